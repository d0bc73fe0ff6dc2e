"""tvm.topi of the alias layer against NumPy, in a process of its own."""

import subprocess
import sys
import textwrap

PROGRAM = """
import numpy as np
import tilewright as tw
from tilewright import te
from tilewright.compat.tvm import topi

for name in ("argmax", "argmin"):
    for axis, keepdims in ((1, False), (0, True), ((0, 2), False), (None, True)):
        A = te.placeholder((3, 5, 4), "int32")
        kernel = tw.compile(te.create_prim_func([A, getattr(topi, name)(A, axis=axis, keepdims=keepdims)]))
        a = np.random.default_rng(0).integers(0, 4, (3, 5, 4), dtype="int32")
        pair = axis == (0, 2)
        moved = a.transpose(1, 0, 2).reshape(5, 12) if pair else a
        want = getattr(np, name)(moved, 1 if pair else axis, keepdims=keepdims)
        b = np.zeros(want.shape, "int32")
        kernel(a, b)
        assert (b == want).all(), (name, axis)

A = te.placeholder((8,), "float32")
a, b = np.array([1, 3, 0, 3, 2, 3, 1, 0], "float32"), np.zeros((), "int32")
tw.compile(te.create_prim_func([A, topi.argmax(A, 0, select_last_index=True)]))(a, b)
assert b == 5
try:
    topi.conv2d.schedule
except AttributeError as error:
    print(error)
"""


def test_positions_of_extremes_along_axes_and_names_that_are_only_mentioned():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout) == (0, "Tilewright has no tvm.topi.conv2d yet\n"), done.stderr
