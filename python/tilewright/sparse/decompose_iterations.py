"""The iterations of a program over formats: one for each rule in the place of one over the tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.support.nodes import nodes_of

if TYPE_CHECKING:
    from tilewright.sparse.decompose import Format


def refusal(message: str, hint: str) -> ArgumentError:
    """Return the error for a program that cannot be decomposed."""
    return ArgumentError.of("sparse/decompose", message, hint)


def variables_of(expr: Any) -> set[ir.Var]:
    """Return the variables that occur in an expression or a statement."""
    return set(nodes_of(expr, ir.Var))


def decomposed(statement: Any, tensors: Sequence[ir.Buffer], formats: Sequence[Format]) -> list[Any]:
    """Return the statements in the place of one: if it is an iteration over the tensors, one for each rule.

    Raises:
        tilewright.ArgumentError: The tensors are accessed in another way ("sparse/decompose").
    """
    accesses = _accesses(statement, tensors)
    if not accesses:
        return [statement]
    name, axes = accesses[0].buffer.name, tensors[0].axes
    if not isinstance(statement, ir.SparseIteration):
        raise refusal(f"'{name}' is accessed outside of an iteration", "access it in T.sp.iteration")
    own = {axis: at for at, axis in enumerate(axes)}
    mapped = [each for each in statement.iter_vars if each.axis in own]
    if len(mapped) != len(own):
        message = f"the iteration '{statement.name_hint}' accesses '{name}', and is not over its axes"
        hint = f"iterate over {', '.join(axis.name for axis in axes)} in one iteration, which is not in another one"
        raise refusal(message, hint)
    in_order = sorted(mapped, key=lambda each: own[each.axis])
    _check_accesses(accesses, [each.var for each in in_order])
    writes = _writes(statement, tensors)
    init, shared = _divided_init(statement, tensors)
    rewritten: list[Any] = []
    if shared is not None:
        made = ir.SparseIteration(_outside_of_reductions(statement), f"{statement.name_hint}_init", {}, None, shared)
        rewritten += decomposed(made, tensors, formats)
    for each in formats:
        rewritten.append(_over(each, statement, in_order, init, writes))
    return rewritten


def _outside_of_reductions(statement: Any) -> list[Any]:
    """Return the variables that an init runs over: the spatial ones that do not stand below one of the reduction."""
    kept: list[Any] = []
    reduced: list[Any] = []
    for each in statement.iter_vars:
        is_below = any(each.axis.parent is not None and each.axis.parent.same_as(axis) for axis in reduced)
        if each.iter_type == ir.IterType.DATA_PAR and not is_below:
            kept.append(each)
        else:
            reduced.append(each.axis)
    return kept


def _divided_init(statement: Any, tensors: Sequence[ir.Buffer]) -> tuple[Any, Any]:
    """Return the part of an init that writes the tensors, each element of which belongs to one rule, and the part that
    writes what all rules update; None for parts that there are not.

    Raises:
        tilewright.ArgumentError: The parts cannot be separated ("sparse/decompose").
    """
    init = statement.init
    if init is None or not _writes(init, tensors):
        return None, init
    statements = list(init.seq) if isinstance(init, ir.SeqStmt) else [init]
    own = [part for part in statements if _writes(part, tensors)]
    shared = [part for part in statements if not _writes(part, tensors)]
    stores = (store for part in own for store in nodes_of(part, ir.BufferStore))
    others = any(not _is_one_of(tensors, store.buffer) for store in stores)
    if others or any(_accesses(part, tensors) for part in shared):
        names = ", ".join(tensor.name for tensor in tensors)
        message = f"the init of '{statement.name_hint}' writes {names}, and other buffers along with it"
        raise refusal(message, "write those in statements of their own, which do not read what is decomposed")
    if not shared:
        return init, None
    first, second = (parts[0] if len(parts) == 1 else ir.SeqStmt(parts) for parts in (own, shared))
    return first, second


def _over(each: Format, statement: Any, mapped: Sequence[Any], init: Any, writes: bool) -> Any:
    """Return the iteration over a format. Its axes replace the first of the tensor's axes."""
    spatial = each.spatial_axes([old.iter_type == ir.IterType.DATA_PAR for old in mapped])
    # An axis below a root of one position runs in one loop with it: over all of its positions.
    new = [
        ir.SpIterVar(
            var,
            ir.IterType.DATA_PAR if writes or at in spatial else ir.IterType.COMM_REDUCE,
            axis,
            at == 1 and each.has_root,
        )
        for at, (var, axis) in enumerate(zip(each.variables, each.axes, strict=True))
    ]
    # Rows of a list are outermost: each is summed by itself.
    first = each.ranked_axes()
    new = [new[at] for at in first] + [item for at, item in enumerate(new) if at not in first]
    iter_vars: list[Any] = []
    for old in statement.iter_vars:
        if old not in mapped:
            iter_vars.append(old)
        elif new:
            iter_vars += new
            new = []
    body = _at(each, statement.body, mapped)
    body = ir.IfThenElse(each.is_present(), body)
    if init is not None:
        needs_coordinates = bool(variables_of(_in_elements(each, init)) & {old.var for old in mapped})
        init = _at(each, init, mapped)
        if needs_coordinates:  # padding has none; else it may be initialized
            init = ir.IfThenElse(each.is_present(), init)
    name = f"{statement.name_hint}_{each.rule.name}"
    # Each iteration has variables of its own, and so have loops and lets in it.
    made: Any = ir.SparseIteration(iter_vars, name, statement.annotations, init, body)
    return _core.renew_defs(made)


def _at(each: Format, body: Any, mapped: Sequence[Any]) -> Any:
    """Return the statement for a stored element: accesses of the tensor are to that element, other coordinates are
    looked up."""
    coordinates = each.coordinates()
    return _core.substitute(
        _in_elements(each, body), {old.var: new for old, new in zip(mapped, coordinates, strict=True)}
    )


def _in_elements(each: Format, body: Any) -> Any:
    """Return the statement with accesses of the tensor replaced by accesses of the stored element."""
    indices = list(each.variables)

    def replaced(node: Any) -> Any:
        if isinstance(node, ir.BufferLoad) and node.buffer in each.elements:
            return ir.BufferLoad(each.elements[node.buffer], indices)
        if isinstance(node, ir.BufferStore) and node.buffer in each.elements:
            return ir.BufferStore(each.elements[node.buffer], node.value, indices)
        return None

    return _core.rewrite(body, replaced)


def _is_one_of(tensors: Sequence[ir.Buffer], buffer: ir.Buffer) -> bool:
    return any(buffer.same_as(tensor) for tensor in tensors)


def _accesses(statement: Any, tensors: Sequence[ir.Buffer]) -> list[Any]:
    accesses = nodes_of(statement, ir.BufferLoad, ir.BufferStore)
    return [access for access in accesses if _is_one_of(tensors, access.buffer)]


def _writes(statement: Any, tensors: Sequence[ir.Buffer]) -> bool:
    return any(isinstance(access, ir.BufferStore) for access in _accesses(statement, tensors))


def _check_accesses(accesses: Sequence[Any], variables: Sequence[ir.Var]) -> None:
    for access in accesses:
        own = [isinstance(i, ir.Var) and i.same_as(v) for i, v in zip(access.indices, variables, strict=True)]
        if not all(own):
            message = f"'{access.buffer.name}' is accessed at other coordinates than those of its iteration"
            raise refusal(message, "only elements that the iteration runs over are stored elsewhere")
