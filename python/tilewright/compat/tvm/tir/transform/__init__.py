"""tvm.tir.transform: passes over functions; those of the pipeline that do what a pass of Tilewright's does."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.target import current
from tilewright.compat.tvm.tir.analysis import verify_memory
from tilewright.compat.tvm.tir.transform.default_gpu_schedule import with_threads
from tilewright.compat.tvm.tir.transform.function_pass import PrimFuncPass, prim_func_pass
from tilewright.compat.tvm.tir.transform.hoist_conditions import hoisted
from tilewright.compat.tvm.tir.transform.horizontal_fusion import fused
from tilewright.compat.tvm.tir.transform.lanes import branches_lane_by_lane
from tilewright.compat.tvm.tir.transform.lower_blocks import OpaqueBlocks, lower_init
from tilewright.compat.tvm.tir.transform.narrow_indices import narrowed
from tilewright.compat.tvm.tir.transform.remove_no_op import without_no_ops
from tilewright.compat.tvm.tir.transform.simplify import simplified
from tilewright.compat.tvm.tir.transform.statements import body_pass, function_pass, with_functions
from tilewright.compat.tvm.tir.transform.unify_threads import Threads
from tilewright.compat.tvm.transform import Pass, PassInfo
from tilewright.sparse import extract_preprocess, remove_preprocess, remove_unused_arguments

__all__ = [
    "AnnotateEntryFunc",
    "Apply",
    "BindTarget",
    "CompactBufferAllocation",
    "ConvertBlocksToOpaque",
    "ConvertForLoopsToSerial",
    "ConvertSSA",
    "DefaultGPUSchedule",
    "ExtractPreprocess",
    "Filter",
    "FlattenBuffer",
    "ForceNarrowIndexToInt32",
    "HoistIfThenElse",
    "HorizontalFusion",
    "InjectScope",
    "LoopPartition",
    "LowerAtomic",
    "LowerInitBlock",
    "LowerMatchBuffer",
    "LowerOpaqueBlock",
    "PlanAndUpdateBufferAllocationLocation",
    "PrimFuncPass",
    "RemoveAssume",
    "RemoveNoOp",
    "RemovePreprocess",
    "RemoveStoreUndef",
    "RemoveUnusedArgs",
    "RewriteUnsafeSelect",
    "Simplify",
    "SkipAssert",
    "UnifyThreadBinding",
    "UnrollLoop",
    "VectorizeLoop",
    "VerifyMemory",
    "prim_func_pass",
]


def _native(name: str, *passes: str) -> Callable[[], Pass]:
    def make() -> Pass:
        def run(mod: Any, context: Any) -> Any:
            target = current()
            for step in passes:
                mod = _core.run_pass(step, mod, "native" if target is None else str(target))
            return mod

        return Pass(run, PassInfo(0, f"tir.{name}"))

    make.__name__ = name
    make.__doc__ = f"The pass {' and '.join(passes)} of Tilewright's pipeline."
    return make


PlanAndUpdateBufferAllocationLocation = _native("PlanAndUpdateBufferAllocationLocation", "plan_allocations")
ConvertBlocksToOpaque = _native("ConvertBlocksToOpaque", "inline_block_axes")
CompactBufferAllocation = _native("CompactBufferAllocation", "compact_buffers")
LowerMatchBuffer = _native("LowerMatchBuffer", "lower_match_buffers")
FlattenBuffer = _native("FlattenBuffer", "flatten_buffers")
LowerAtomic = _native("LowerAtomic", "lower_atomics")
LoopPartition = _native("LoopPartition", "partition_loops")
UnrollLoop = _native("UnrollLoop", "unroll_loops")
_vectorize = _native("VectorizeLoop", "split_vector_loops", "vectorize_loops")


def Simplify() -> Pass:
    """Return the pass that simplifies expressions and removes branches that are never or always taken."""
    return function_pass("Simplify", simplified)


def RemoveNoOp() -> Pass:
    """Remove statements without effect."""
    return function_pass("RemoveNoOp", without_no_ops)


def LowerInitBlock() -> Pass:
    """Return the pass that turns inits of blocks into conditions on their reduction axes."""
    return body_pass("LowerInitBlock", lower_init)


def LowerOpaqueBlock() -> Pass:
    """Return the pass that turns blocks without axes into plain statements, and thread loops into launches."""
    return body_pass("LowerOpaqueBlock", lambda body: OpaqueBlocks().statement(body))


def HoistIfThenElse(variant: str | None = None) -> Pass:
    """Return the pass that moves conditions out of loops in which they are invariant."""
    if variant not in (None, "basic"):
        raise TypeError(f"Tilewright has no HoistIfThenElse({variant!r}) yet")
    return body_pass("HoistIfThenElse", hoisted)


def UnifyThreadBinding() -> Pass:
    """Return the pass that leaves one loop for each thread axis of a launch."""
    return body_pass("UnifyThreadBinding", lambda body: Threads().statement(body))


def ForceNarrowIndexToInt32() -> Pass:
    """Return the pass that converts indices, sizes and loops from int64 to int32."""
    return function_pass("ForceNarrowIndexToInt32", narrowed)


def DefaultGPUSchedule() -> Pass:
    """Return the pass that binds unbound blocks of functions for a GPU to threads."""
    return Pass(lambda mod, context: with_threads(mod, current()), PassInfo(0, "tir.DefaultGPUSchedule"))


def ExtractPreprocess() -> Pass:
    """Keep only the statements of sparse programs that are annotated as preprocessing."""
    return function_pass("ExtractPreprocess", extract_preprocess)


def RemovePreprocess() -> Pass:
    """Return the pass that removes blocks annotated as preprocessing from sparse programs."""
    return function_pass("RemovePreprocess", remove_preprocess)


def RemoveUnusedArgs() -> Pass:
    """Return the pass that removes unused parameters of functions."""
    return function_pass("RemoveUnusedArgs", remove_unused_arguments)


def HorizontalFusion() -> Pass:
    """Return the pass that fuses kernels with the attribute ``horizontal_fuse`` into one, if their threads fit
    together."""
    return function_pass("HorizontalFusion", fused)


def InjectScope() -> Pass:
    """Return a pass that changes nothing: no schedule binds threads that a block does not know of, so each sum is added
    once."""
    return function_pass("InjectScope", lambda func: func)


def _rewritten(name: str, change: Callable[[Any], Any]) -> Pass:
    """Return the pass that replaces each node of a function's body by the result of `change`; None keeps the node."""
    return function_pass(name, lambda function: function.with_body(_core.rewrite(function.body, change)))


_SPARSE = {
    "LowerSparseBuffer": "tilewright.compat.tvm.sparse.lower",
    "LowerSparseIter": "tilewright.compat.tvm.sparse.lower",
    "SpecializeBuffer": "tilewright.compat.tvm.sparse.specialize",
    "SparseFormatDecompose": "tilewright.compat.tvm.sparse.format",
}


def __getattr__(name: str) -> Any:
    """Return a pass of tvm.sparse, which imports this module."""
    if name in _SPARSE:
        return getattr(importlib.import_module(_SPARSE[name]), name)
    return missing("tvm.tir.transform")(name)


def SkipAssert() -> Pass:
    """Return the statement inside assertions, without these."""
    return _rewritten("SkipAssert", lambda node: node.body if isinstance(node, ir.AssertStmt) else None)


def _without_calls(name: str, statement: type[Any], operation: str) -> Pass:
    """Return the pass that removes statements of a class whose value is a call of an operation."""

    def change(node: Any) -> Any:
        call = node.value if isinstance(node, statement) else None
        is_it = isinstance(call, ir.Call) and isinstance(call.op, ir.Op) and call.op.name == operation
        return ir.Evaluate(0) if is_it else None

    return _rewritten(name, change)


def RemoveAssume() -> Pass:
    """Return the pass that removes ``T.assume``."""
    return _without_calls("RemoveAssume", ir.Evaluate, "tir.assume")


def RemoveStoreUndef() -> Pass:
    """Return the pass that removes stores of ``T.undef()``, whose value is unspecified."""
    return _without_calls("RemoveStoreUndef", ir.BufferStore, "tir.undef")


def BindTarget(target: Any) -> Pass:
    """Return the pass that sets the target of functions without one: its host for functions with the attribute
    tir.is_host_func."""

    def bind(function: Any) -> Any:
        own = function.attrs.get("target")
        runs_on_host = bool(function.attrs.get("tir.is_host_func", False))
        if own is not None:
            return function
        chosen = (target.host or target) if runs_on_host else target
        bound = function.with_attr("target", json.loads(chosen.json()))
        return bound.without_attr("tir.is_host_func") if runs_on_host else bound

    return function_pass("BindTarget", bind)


def VerifyMemory() -> Pass:
    """Return the pass that raises an error if a function for a GPU accesses memory outside its threads."""

    def run(mod: Any, context: Any) -> Any:
        for name, function in mod.functions.items():
            if isinstance(function, ir.PrimFunc) and not verify_memory(function):
                raise RuntimeError(
                    f"RuntimeError: Memory verification failed: {name} accesses memory outside of its threads\n"
                    "    Did you forget to bind?"
                )
        return mod

    return Pass(run, PassInfo(0, "tir.VerifyMemory"))


def RewriteUnsafeSelect() -> Pass:
    """Return the pass that turns ``T.Select`` of values that read memory into ``T.if_then_else``, which only evaluates
    the selected one."""

    def reads(value: Any) -> bool:
        """Return whether evaluating it reads memory unconditionally; only the condition of if_then_else counts."""
        found: list[Any] = []

        def see(node: Any) -> bool:
            if isinstance(node, ir.Call) and getattr(node.op, "name", "") == "tir.if_then_else":
                found.append(node) if reads(node.args[0]) else None
                return False
            if isinstance(node, ir.BufferLoad):
                found.append(node)
            return True

        ir.pre_order_visit(value, see)
        return bool(found)

    def change(node: Any) -> Any:
        if not isinstance(node, ir.Select) or node.condition.dtype != "bool":
            return None
        if not reads(node.true_value) and not reads(node.false_value):
            return None
        return _core.call_intrinsic("if_then_else", [node.condition, node.true_value, node.false_value])

    return _rewritten("RewriteUnsafeSelect", change)


def _serial(name: str, kind: ir.ForKind) -> Pass:
    """Return the pass that makes loops of a kind serial."""

    def change(loop: Any) -> Any:
        if not isinstance(loop, ir.For) or loop.kind != kind:
            return None
        return ir.For(loop.loop_var, loop.min, loop.extent, ir.ForKind.SERIAL, None, loop.annotations, loop.body)

    return _rewritten(name, change)


def VectorizeLoop(enable_vectorize: bool = True) -> Pass:
    """Return the pass that turns vectorized loops into vector operations; without `enable_vectorize`, into serial
    loops."""
    if not enable_vectorize:
        return _serial("VectorizeLoop", ir.ForKind.VECTORIZED)
    vectorize = _vectorize()

    def run(mod: Any, context: Any) -> Any:
        if not context.config.get("tir.enable_buffer_level_predication", False):
            mod = body_pass("VectorizeLoop", branches_lane_by_lane)(mod)
        return vectorize(mod)

    return Pass(run, PassInfo(0, "tir.VectorizeLoop"))


def ConvertForLoopsToSerial() -> Pass:
    """Return the pass that makes parallel loops serial."""
    return _serial("ConvertForLoopsToSerial", ir.ForKind.PARALLEL)


def ConvertSSA() -> Pass:
    """Return the pass that gives each function its own variables for all definitions."""
    return function_pass("ConvertSSA", _core.renew_defs)


def Apply(ftransform: Callable[[Any], Any]) -> Pass:
    """Return the pass that replaces each function by the result of `ftransform`; None removes it."""
    return function_pass("Apply", ftransform)


def Filter(fcond: Callable[[Any], bool]) -> Pass:
    """Return the pass that keeps the functions for which `fcond` holds."""
    return function_pass("Filter", lambda function: function if fcond(function) else None)


def AnnotateEntryFunc() -> Pass:
    """Return the pass that marks the only function of a module, or the exported one, as its entry."""

    def run(mod: Any, context: Any) -> Any:
        functions = [f for f in mod.functions.values() if isinstance(f, ir.PrimFunc)]
        exported = [f for f in functions if "global_symbol" in f.attrs]
        entry = functions if len(functions) == 1 else exported if len(exported) == 1 else []
        return with_functions(
            mod, lambda f: f.with_attr("tir.is_entry_func", True) if any(map(f.same_as, entry)) else f
        )

    return Pass(run, PassInfo(0, "tir.AnnotateEntryFunc"))
