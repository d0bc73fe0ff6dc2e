"""The precision in which a program computes, which decides how much its results may change with the order of terms."""

from __future__ import annotations

from tilewright import ir
from tilewright.support.numpy_dtype import lanes_of

#: bits of the significand, the implicit one included
SIGNIFICANDS = {
    "float64": 53,
    "float32": 24,
    "float16": 11,
    "bfloat16": 8,
    "float8_e4m3fn": 4,
    "float8_e5m2": 3,
    "float4_e2m1fn": 2,
}
_OPERATIONS = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Min, ir.Max, ir.Call)


def operation_dtype(program: ir.PrimFunc) -> str | None:
    """Return the float type of lowest precision among a program's operations and the buffers that it both writes and
    reads, such as those of sums. A result that is only written is rounded to its own type once, after all of them.

    Returns:
        None if there are no such types, or if the program passes pointers on, or has views of buffers.
    """
    written: dict[object, str] = {}
    read: set[object] = set()
    dtypes: set[str] = set()
    is_known = True

    def look(node: object) -> None:
        nonlocal is_known
        if isinstance(node, ir.BufferStore):
            written[node.buffer.data] = node.buffer.dtype
        elif isinstance(node, ir.BufferLoad):
            read.add(node.buffer.data)
        elif isinstance(node, ir.Block):
            is_known = is_known and not node.match_buffers
        elif isinstance(node, _OPERATIONS):
            dtypes.add(node.dtype)
            arguments = node.args if isinstance(node, ir.Call) else ()
            is_known = is_known and all(getattr(argument, "dtype", "") != "handle" for argument in arguments)

    ir.visit(program.body, look)
    dtypes |= {dtype for data, dtype in written.items() if data in read}
    floats = {lanes_of(dtype)[0] for dtype in dtypes if "float" in dtype}
    return min(floats, key=lambda dtype: SIGNIFICANDS[dtype]) if floats and is_known else None
