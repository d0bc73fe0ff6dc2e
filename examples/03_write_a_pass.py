"""Lesson 3: write your own pass over the nodes of a program.

    python examples/03_write_a_pass.py

`tw.ir.visit` visits every node, `tw.ir.rewrite` replaces nodes, and `match` destructures them.
"""

import numpy as np

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T


@T.prim_func
def divide(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("Y"):
            vi = T.axis.spatial(64, i)
            Y[vi] = X[vi] / T.float32(8)


def divide_by_multiplying(node: ir.Node) -> ir.Node | None:
    """Rewrite x / c to x * (1 / c) where that is exact: c is a power of two."""
    match node:
        case ir.Div(x, ir.FloatImm(dtype, value)) if value != 0 and np.frexp(value)[0] in (0.5, -0.5):
            return x * ir.FloatImm(dtype, 1 / value)
    return None


def count(program: ir.Node, kind: type[ir.Node]) -> int:
    found = []
    ir.visit(program, lambda node: found.append(node) if isinstance(node, kind) else None)
    return len(found)


def main() -> None:
    after = ir.rewrite(divide, divide_by_multiplying)
    print(after.script())
    assert count(divide, ir.Div) == 1 and count(after, ir.Div) == 0

    x = np.linspace(-1, 1, 64, dtype=np.float32)
    y = np.empty_like(x)
    tw.compile(after)(x, y)
    np.testing.assert_array_equal(y, x / 8)


if __name__ == "__main__":
    main()
