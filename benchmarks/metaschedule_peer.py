"""The other side of operators.py: TVM's MetaSchedule, run by the Python of an environment with apache-tvm and xgboost.

It imports nothing of ours. TVM tunes each operator once: its database and the seconds that it took stay in a folder,
and a later run only compiles the best of it. TVM is spared what would only slow it down: its builders do not import
the tensor intrinsics of other processors (tens of seconds for each batch in 0.27), and have two minutes instead of
half a one.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peer import serve

#: seconds that a request to take times lasts
TURN = 0.02


class Theirs:
    """Each request names what to do: tune an operator (or load what was tuned), or time the last one."""

    def __init__(self) -> None:
        self.place: Callable[[], Callable[[], object]] | None = None

    def answer(self, request: dict[str, Any]) -> Any:
        if request["do"] == "tune":
            return self.tune(request["family"], request["number"], Path(request["work"]), request["trials"])
        assert self.place is not None
        call = self.place()
        call()
        least, end = math.inf, time.perf_counter() + TURN
        while time.perf_counter() < end or least == math.inf:
            start = time.perf_counter()
            call()
            least = min(least, time.perf_counter() - start)
        return least

    def tune(self, family: str, number: int, work: Path, trials: int) -> float | None:
        """Seconds that the search took, in this run or an earlier one; None where it found nothing."""
        import numpy as np
        import tvm
        from tvm.s_tir import meta_schedule as ms
        from tvm.s_tir.meta_schedule.builder import LocalBuilder
        from tvm.s_tir.meta_schedule.testing import te_workload

        function = te_workload.create_te_workload(family, number)
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": 1})
        done = work / f"{family}-{number}" / f"done-{trials}.json"
        done.parent.mkdir(parents=True, exist_ok=True)
        if not done.exists():
            for left in done.parent.glob("database_*.json"):
                left.unlink()
            start = time.perf_counter()
            builder = LocalBuilder(timeout_sec=120, f_build="benchmark.build", initializer=register_build)
            ms.tune_tir(module, target, str(done.parent), trials, num_trials_per_iter=32, builder=builder, seed=0)
            done.write_text(json.dumps({"seconds": time.perf_counter() - start}))
        database = ms.database.JSONDatabase(work_dir=str(done.parent))
        schedule = ms.tir_integration.compile_tir(database, module, target)
        if schedule is None:
            return None
        built = tvm.compile(schedule.mod, target=target)
        rng = np.random.default_rng(0)
        numbers = [
            rng.random([int(d) for d in each.shape], dtype="float32")
            for each in ms.arg_info.ArgInfo.from_prim_func(function)
        ]
        main = built["main"]

        def place() -> Callable[[], object]:
            """A call with arrays that lie elsewhere in memory than before."""
            arguments = [tvm.runtime.tensor(array) for array in numbers]
            return lambda: main(*arguments)

        self.place = place
        return json.loads(done.read_text())["seconds"]


def register_build() -> None:
    """Build as TVM does in the process of a builder, without importing all tensor intrinsics."""
    import tvm
    from tvm.driver import build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    def build_only(module: Any, target: Any, _params: Any) -> Any:
        return build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)

    tvm.register_global_func("benchmark.build", build_only, override=True)


if __name__ == "__main__":
    # what TVM writes to standard output is none of the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ["TVM_NUM_THREADS"] = "1"
    serve(Theirs().answer, answers)
