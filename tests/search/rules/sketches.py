"""What rules make of programs, and what has to hold of it."""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright import _core, ir, te
from tilewright import meta_schedule as ms
from tilewright.testing import formulas
from tilewright.testing.check import check_trace

GPU = "cuda -arch=sm_75 -max_threads_per_block=1024"
NEW_GPU = "cuda -arch=sm_86 -max_threads_per_block=1024"

#: Operators of odd, prime, tiny and thin sizes.
PROGRAMS: dict[str, Any] = {
    "matmul": lambda: formulas.matmul(7, 13, 11),
    "thin": lambda: formulas.matmul(1, 3, 34),
    "relu": lambda: formulas.matmul_relu(8, 6, 10),
    "batch": lambda: formulas.batch_matmul_nkkm(2, 3, 5, 4),
    "conv1d": lambda: formulas.conv1d_nlc(1, 7, 2, 3, 3, 2, 1),
    "conv2d": lambda: formulas.conv2d_nhwc(1, 5, 4, 2, 3, 3, 1, 1),
    "groups": lambda: formulas.conv2d_nhwc(1, 4, 3, 4, 6, 2, 1, 0, 1, 2),
    "depthwise": lambda: formulas.depthwise_conv2d_nhwc(1, 5, 3, 4, 3, 1, 1),
    "transposed": lambda: formulas.conv2d_transpose_nhwc(1, 2, 3, 4, 2, 4, 2, 1),
    "capsule": lambda: formulas.conv2d_capsule_nhwijc(1, 3, 2, 2, 3, 3, 1, 1, 2),
    "norm": lambda: formulas.norm_bmn(2, 5, 7),
    "softmax": lambda: formulas.softmax_mn(5, 9),
    "bn_relu": lambda: formulas.conv2d_nhwc_bn_relu(1, 4, 3, 2, 3, 3, 1, 1),
    "heads": lambda: formulas.transpose_batch_matmul(1, 5, 3, 4),
    "pool": lambda: formulas.max_pool2d_nchw(1, 5, 4, 2, 1),
}


def program(name: str) -> ir.PrimFunc:
    """One of PROGRAMS."""
    return te.create_prim_func(PROGRAMS[name](), name="main")


def context_of(target: str, seed: int = 0) -> Any:
    """A task for a target."""
    context = _core.TuneContext()
    context.target = tw.Target(target)
    context.seed = seed
    return context


def sketches(function: ir.PrimFunc, *rules: Any, target: str = "llvm -num-cores=4", seed: int = 0) -> list[Any]:
    """The schedules that the rules make of the blocks of a function."""
    return made_by(function, *rules, target=target, seed=seed)[0]


def made_by(
    function: ir.PrimFunc, *rules: Any, target: str = "llvm -num-cores=4", seed: int = 0
) -> tuple[list[Any], ms.PostOrderApply]:
    """The schedules that the rules make of the blocks of a function, and the space, which knows what was refused."""
    space = ms.PostOrderApply()
    space.schedule_rules, space.postprocs, space.mutators = list(rules), [], []
    space.initialize(context_of(target, seed))
    return space.generate_design_space(ir.IRModule({"main": function})), space


def check(function: ir.PrimFunc, made: list[Any]) -> None:
    """Each schedule computes what the function computes, and its trace leads to it, also with other draws."""
    module = ir.IRModule({"main": function})
    for sch in made:
        sch.verify()
        check_trace(sch, module, ["json"])
        other = tw.Schedule(module, seed=17)
        sch.trace.apply_to_schedule(other, remove_postproc=True, decision_provider=lambda *_: None)
        other.verify()


def annotations(sch: Any, block: str) -> dict[str, Any]:
    """Of a block."""
    return dict(sch.get(sch.get_block(block)).annotations)


def blocks(sch: Any) -> list[str]:
    """The names of the blocks below the root, in program order."""
    return [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))]
