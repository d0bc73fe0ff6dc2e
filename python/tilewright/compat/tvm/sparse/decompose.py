"""Iterations over new axes in the place of old ones, as published (SparseTIR, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.support.changed_nodes import with_fields


def decomposed(func: ir.PrimFunc, rules: Sequence[Any], copies: bool) -> ir.PrimFunc:
    """Return the function with each iteration replaced by one per rule; if `copies`, iterations that copy buffers into
    the formats come first."""
    realize: Any = func.body if isinstance(func.body, ir.BlockRealize) else None
    root = None if realize is None else realize.block
    body = func.body if root is None else root.body
    statements = list(body.seq) if isinstance(body, ir.SeqStmt) else [body]
    for statement in statements:
        if not isinstance(statement, ir.SparseIteration):
            raise TypeError(f"formats are decomposed in functions of sparse iterations, not of {type(statement)}")
    formats = [_Format(rule, func) for rule in rules]
    made: list[Any] = [each for one in formats for each in one.copies()] if copies else []
    made += [one.compute(statement) for one in formats for statement in statements]
    params, buffers, axes = list(func.params), dict(func.buffer_map), list(func.axes)
    for one in formats:
        params += one.params
        buffers |= one.buffers
        axes += one.axes.values()
    new: Any = made[0] if len(made) == 1 else _core.seq(made)
    if root is not None:
        new = ir.BlockRealize(realize.iter_values, realize.predicate, with_fields(root, body=new))
    attrs = dict(func.attrs) | ({"composable": 1} if len(rules) > 1 else {})
    return ir.PrimFunc(params, buffers, func.ret_type, attrs, new, axes)


class _Format:
    """The axes and buffers that a format rule declares, renamed to end with the rule's name."""

    def __init__(self, rule: Any, func: ir.PrimFunc) -> None:
        self.rule = rule
        desc = rule.new_format_desc
        suffix = f"_{rule.name}"
        fresh: dict[Any, Any] = {param: ir.Var(param.name + suffix, _type_of(param)) for param in desc.params}
        arrays: dict[ir.Buffer, ir.Buffer] = {}

        def buffer_of(old: ir.Buffer) -> ir.Buffer:
            if old in arrays:
                return arrays[old]
            name = old.name + suffix
            fresh[old.data] = ir.Var(name, old.data.type_annotation)
            arrays[old] = with_fields(
                old,
                data=fresh[old.data],
                name=name,
                shape=[renamed(each) for each in old.shape],
                strides=[renamed(each) for each in old.strides],
                elem_offset=renamed(old.elem_offset),
                axes=[self.axes[axis] for axis in old.axes],
            )
            return arrays[old]

        def renamed(expr: Any) -> Any:
            return _core.substitute(expr, fresh) if isinstance(expr, _core.Expr) else expr

        self.axes: dict[Any, Any] = {}
        for old in desc.axes:
            self.axes[old] = with_fields(
                old,
                name=old.name + suffix,
                parent=None if old.parent is None else self.axes[old.parent],
                **{field: renamed(getattr(old, field)) for field in ("length", "nnz", "nnz_cols")},
                indptr=None if old.indptr is None else buffer_of(old.indptr),
                indices=None if old.indices is None else buffer_of(old.indices),
                flattened=[self.axes[each] for each in old.flattened],
            )
        self.params = [fresh[param] for param in desc.params]
        self.buffers = {fresh[param]: buffer_of(buffer) for param, buffer in desc.buffer_map.items()}
        self.by_name = {old.name: new for old, new in self.axes.items()}
        described = [desc.buffer_map[param] for param in desc.params if param in desc.buffer_map]
        stored = [arrays[buffer] for buffer in described if buffer.axes]
        named = {buffer.name: buffer for buffer in func.buffer_map.values()}
        for name in rule.buffers_to_rewrite:
            if name not in named:
                raise ValueError(f"the function has no buffer {name!r} that rule {rule.name!r} is for")
        if len(stored) != len(rule.buffers_to_rewrite):
            names = [buffer.name for buffer in stored]
            raise ValueError(f"rule {rule.name!r}: {names} stand for {list(rule.buffers_to_rewrite)}, one for each")
        self.new: dict[Any, Any] = {
            named[name]: buffer for name, buffer in zip(rule.buffers_to_rewrite, stored, strict=True)
        }
        self.old_axes = {axis.name: axis for buffer in self.new for axis in buffer.axes}

    def coordinates(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the old coordinates, by axis name, in terms of variables of the new axes."""
        rule, given = self.rule, self.rule.inv_idx_map
        known = [variables[name] for name in rule.axes_after_rewrite]
        return dict(zip(rule.axes_before_rewrite, _applied(given, known), strict=True))

    def copies(self) -> Iterable[Any]:
        """Yield, for each buffer, the iteration that copies it into the format."""
        for old, new in self.new.items():
            names = {axis: name for name, axis in self.by_name.items()}
            iter_vars = [ir.SpIterVar(_variable(axis), ir.IterType.DATA_PAR, axis) for axis in new.axes]
            variables = {names[each.axis]: each.var for each in iter_vars}
            coordinates = self.coordinates(variables)
            value = ir.BufferLoad(old, [coordinates[axis.name] for axis in old.axes])
            store = ir.BufferStore(new, value, [each.var for each in iter_vars])
            yield ir.SparseIteration(iter_vars, f"rewrite_{new.name}", {"preprocess": True}, None, store)

    def compute(self, statement: Any) -> Any:
        """Return the iteration over the new axes."""
        iter_vars: list[Any] = []
        values: dict[Any, Any] = {}
        variables: dict[str, Any] = {}
        for old in statement.iter_vars:
            below = self.rule.axis_map.get(old.axis.name)
            for axis in [old.axis] if below is None else [self.by_name[name] for name in below]:
                iter_vars.append(ir.SpIterVar(_variable(axis), old.iter_type, axis, old.fused and below is None))
            if below is None:
                values[old.var] = iter_vars[-1].var
            else:
                variables |= {name: each.var for name, each in zip(below, iter_vars[-len(below) :], strict=True)}
        if {*self.rule.axes_after_rewrite} <= {*variables}:
            coordinates = self.coordinates(variables)
            values |= {
                old.var: coordinates[old.axis.name]
                for old in statement.iter_vars
                if old.axis.name in self.rule.axis_map
            }
        own = {old.axis: old.var for old in statement.iter_vars}

        def indices(old: ir.Buffer, given: Sequence[Any]) -> list[Any]:
            new = self.new[old]
            names = {axis: name for name, axis in self.by_name.items()}
            if all(own.get(axis) is not None and own[axis].same_as(i) for axis, i in zip(old.axes, given, strict=True)):
                return [variables[names[axis]] for axis in new.axes]
            at = dict(zip((axis.name for axis in old.axes), given, strict=True))
            mapped = _applied(self.rule.idx_map, [at[name] for name in self.rule.axes_before_rewrite])
            found = dict(zip(self.rule.axes_after_rewrite, mapped, strict=True))
            analyzer = _core.Analyzer()
            for each in iter_vars:
                extent = each.axis.nnz_cols if each.axis.nnz_cols is not None else each.axis.length
                analyzer.bind(each.var, ir.Range(_core.const(0, each.var.dtype), extent))
            made: list[Any] = [_core.substitute(found[names[axis]], values) for axis in new.axes]
            return [analyzer.simplify(each) for each in made]

        def changed(node: Any) -> Any:
            if isinstance(node, ir.BufferLoad) and node.buffer in self.new:
                return ir.BufferLoad(self.new[node.buffer], indices(node.buffer, node.indices))
            if isinstance(node, ir.BufferStore) and node.buffer in self.new:
                return ir.BufferStore(self.new[node.buffer], node.value, indices(node.buffer, node.indices))
            return None

        parts: list[Any] = [
            None if part is None else _core.substitute(_core.rewrite(part, changed), values)
            for part in (statement.init, statement.body)
        ]
        name = f"{statement.name_hint}_{self.rule.name}"
        return ir.SparseIteration(iter_vars, name, statement.annotations, *parts)


def _applied(mapping: Any, given: Sequence[Any]) -> list[Any]:
    known = dict(zip(mapping.initial_indices, given, strict=True))
    return [_core.substitute(each, known) for each in mapping.final_indices]


def _variable(axis: Any) -> ir.Var:
    return ir.Var(f"v{axis.name}".lower(), axis.idtype)


def _type_of(variable: Any) -> Any:
    return "handle" if variable.dtype == "handle" else variable.dtype
