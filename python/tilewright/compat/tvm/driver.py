"""tvm.build, tvm.compile and tvm.lower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright.compat.tvm.runtime.module import as_tvm
from tilewright.compat.tvm.sparse.lower import with_initialization
from tilewright.compat.tvm.target import current
from tilewright.compat.tvm.tir.transform.horizontal_fusion import fused
from tilewright.compat.tvm.transform import PassContext
from tilewright.ir import IRModule, PrimFunc


def build(
    mod: PrimFunc | IRModule, target: Any = None, pipeline: str | None = "default", *, name: str | None = None
) -> Any:
    """Compile a function to a kernel, or a module to a module of kernels, by default for the current target. There is
    one pipeline, "default"."""
    if pipeline not in ("default", None):
        raise TypeError(f"Tilewright has one pipeline, so it cannot build by {pipeline!r}")
    if name is not None:
        if not isinstance(mod, PrimFunc):
            raise TypeError("Tilewright has a name for one function only: a module names its own")
        mod = mod.with_attr("global_symbol", name)
    mod = _finished(mod)
    chosen = target if target is not None else current()
    checked = bool(PassContext.current().config.get("tir.instrument_bound_checkers"))
    return as_tvm(
        tw.compile(mod, target="native" if chosen is None else chosen, schedule="as written", check_bounds=checked)
    )


def compile(
    mod: PrimFunc | IRModule,
    target: Any = None,
    *,
    relax_pipeline: str | None = "default",
    tir_pipeline: str | None = "default",
) -> Any:
    """Compile a function to a kernel, or a module to a module of kernels. `relax_pipeline` is ignored: there are no
    Relax functions."""
    return build(mod, target, tir_pipeline)


def _finished(mod: Any) -> Any:
    """Return the program after what the driver of SparseTIR's implementation does by itself: kernels of a function
    that is annotated `horizontal_fuse` are fused, and lowered iterations are completed where the script has not called
    lower_sparse_buffer."""
    if not isinstance(mod, IRModule):
        return fused(with_initialization(mod)) if isinstance(mod, PrimFunc) else mod
    made = {str(name): _finished(func) for name, func in mod.functions.items()}
    same = all(func.same_as(made[str(name)]) for name, func in mod.functions.items())
    return mod if same else IRModule(made, mod.attrs)


def lower(
    inp: Any,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Any = None,
    simple_mode: bool = False,
) -> Any:
    """Return the lowered program of a schedule, a function or a module, as the code generator gets it."""
    if args is not None or binds is not None:
        raise TypeError("Tilewright lowers programs, not te schedules: make one by te.create_prim_func")
    program = getattr(inp, "mod", inp)
    if isinstance(program, PrimFunc) and name != "main":
        program = program.with_attr("global_symbol", name)
    chosen = current()
    return tw.lower(program, target="native" if chosen is None else chosen)
