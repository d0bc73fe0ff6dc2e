"""Parameters annotated with a call: one rule of the type checker is switched off, for the whole file."""
# mypy: disable-error-code="valid-type"

from tilewright.script import tir as T


@T.prim_func
def add(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), p: T.handle("float32", "shared")) -> None:
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
