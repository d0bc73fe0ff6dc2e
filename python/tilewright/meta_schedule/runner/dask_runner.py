"""The runner that measures on the workers of a Dask cluster."""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright.cluster import labels, processors
from tilewright.cluster.connection import Cluster
from tilewright.cluster.lone import LoneTask
from tilewright.cluster.messages import pack, unpack
from tilewright.cluster.stations import LOOK
from tilewright.cluster.tasks import MOST_WAITING, Run
from tilewright.database.origins import Origin, library_versions
from tilewright.meta_schedule.evaluator import EvaluatorConfig
from tilewright.meta_schedule.runner.local_runner import LocalRunner
from tilewright.meta_schedule.runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult
from tilewright.support import limits
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["DaskRunner"]


#: seconds in which a process starts that calls a kernel, on a machine that is busy
START_SECONDS = 30.0


class DaskRunner(Runner):
    """Measures on the workers of a Dask cluster that have the target's processor. In a session with a
    :class:`~tilewright.meta_schedule.builder.DaskBuilder`, kernels are compared with the unscheduled program, and times
    of different hosts are related to each other by the fastest kernel so far.

    Args:
        cluster: the address of the scheduler, "tcp://host:8786", or a ``distributed.Client``.
        timeout_sec: maximum seconds for a kernel with all its calls. A worker that is stopped fails it soon after.
        evaluator_config: options for the number of calls.
        target: target of the kernels outside of sessions; "native" by default.

    Raises:
        tilewright.ResourceError: Dask is not installed, or no scheduler answers.
    """

    @suggests_keywords
    def __init__(
        self,
        cluster: Any,
        *,
        timeout_sec: float = 30.0,
        evaluator_config: EvaluatorConfig | None = None,
        target: str | _core.Target = "native",
    ) -> None:
        limits.positive("timeout_sec", timeout_sec)
        what = "an EvaluatorConfig, or None for the default"
        limits.kind("evaluator_config", evaluator_config, EvaluatorConfig | None, what)
        self.timeout_sec, self.evaluator_config = timeout_sec, evaluator_config or EvaluatorConfig()
        self.target = _core.Target(target) if isinstance(target, str) else target
        self.cluster = Cluster(cluster)
        #: whether no code of the user is called
        self.is_plain = type(self).run is DaskRunner.run
        self._close = weakref.finalize(self, self.cluster.close)

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Return one future for each input; the results of kernels are not checked."""
        return [self._run_one(each) for each in runner_inputs]

    def close(self) -> None:
        """Leave the cluster."""
        self._close()

    def _run_one(self, each: RunnerInput) -> RunnerFuture:
        config = self.evaluator_config
        what = {
            "object": Path(each.artifact_path).read_bytes(),
            "device": each.device_type,
            "arguments": [info.as_json() for info in each.args_info],
            "config": [config.number, config.repeat, config.min_repeat_ms, config.enable_cpu_cache_flush],
            "seconds": self.timeout_sec,
            "threads": self.target.num_cores,
        }
        needs = labels.measures(labels.target_key(self.target))

        def submit(name: str, is_suspect: bool) -> Any:
            packed = pack(what | {"job": name, "topic": self.cluster.topic, "is_suspect": is_suspect})
            return self.cluster.client.submit(run_alone, packed, key=name, pure=False, resources={needs: 1})

        task = LoneTask(self.cluster, "measure", submit, needs, self.timeout_sec + START_SECONDS)

        def result() -> RunnerResult:
            try:
                seconds, why, host = unpack(task.result())
            except Exception as error:
                return RunnerResult(None, f"DaskRunner: the measurement was lost: {error}")
            return RunnerResult(seconds, why, origin=Origin(host, library_versions()))

        return RunnerFuture(task.done, result)


def run_alone(packed: bytes) -> bytes:
    """Measure one kernel on a worker as a LocalRunner would, alone on its host."""
    from tilewright.meta_schedule.arg_info import ArgInfo

    what = unpack(packed)
    try:
        run = Run(what)
        wait = processors.waiting(what["seconds"] + MOST_WAITING, run.wanted)
        with tempfile.TemporaryDirectory() as folder, processors.measuring(what["threads"], 1, wait):
            run.begins()
            path = Path(folder) / "kernel.o"
            path.write_bytes(what["object"])
            runner = LocalRunner(what["seconds"], EvaluatorConfig(*what["config"]))
            try:
                infos = [ArgInfo.from_json(info) for info in what["arguments"]]
                future = runner.run([RunnerInput(str(path), what["device"], infos)])[0]
                while not future.done():
                    if not run.wanted():  # by anyone: its process ends
                        raise processors.Canceled
                    time.sleep(LOOK)
                result = future.result()
            finally:
                runner.close()
        return pack([result.run_secs, result.error_msg, labels.host_text()])
    except Exception as error:
        return pack([None, f"DaskRunner: {type(error).__name__}: {error}", labels.host_text()])
