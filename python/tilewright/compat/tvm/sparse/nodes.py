"""Fields of nodes that SparseTIR's implementation calls otherwise."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.support.changed_nodes import with_fields


def _of_array(buffer: Any) -> Any:
    """Return the elements of a sparse buffer as an array without axes; None for other buffers."""
    return with_fields(buffer, axes=[], default_value=None) if buffer.axes else None


#: fields by class; its method follows the spelling of the implementation
FIELDS: dict[Any, dict[str, Any]] = {
    _core.PrimFunc: {"sp_axes": lambda func: func.axes},
    _core.SparseIteration: {
        "sp_iter_vars": lambda iteration: iteration.iter_vars,
        "name": lambda iteration: iteration.name_hint,
    },
    _core.SpIterVar: {"is_reduction": lambda each: each.iter_type == ir.IterType.COMM_REDUCE},
    _core.Axis: {
        "is_variable": lambda axis: axis.indptr is not None,
        "is_sparse": lambda axis: axis.indices is not None,
    },
    _core.Buffer: {"flattened": _of_array},
}
for _class, _fields in FIELDS.items():
    for _name, _get in _fields.items():
        setattr(_class, _name, property(_get))
