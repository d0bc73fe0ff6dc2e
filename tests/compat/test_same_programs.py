"""Comparison of programs in the alias layer: exact first, then with integer index expressions proved equal."""

import subprocess
import sys

PROGRAM = '''
import tvm.testing, pytest
from tvm.script import tir as T
from tvm.tir.schedule.testing import assert_structural_equal_ignore_global_symbol

@T.prim_func
def written(A: T.Buffer((16, 4), "int32")):
    for i, j in T.grid(16, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = vi * 4 + vj

def other(first="(vi * 4 + vj) // 4", value="vi * 4 + vj", extent=16):
    return tvm.script.from_source(f"""
@T.prim_func
def other(A: T.Buffer((16, 4), "int32")):
    for i, j in T.grid({extent}, 4):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.spatial(4, j)
            T.reads()
            T.writes(A[vi, vj])
            A[{first}, vj] = {value}
""")

def test_exact():
    assert_structural_equal_ignore_global_symbol(written, written)

def test_proved():
    assert_structural_equal_ignore_global_symbol(other(), written)
    tvm.ir.assert_structural_equal(other(), other("vi"))
    assert not tvm.ir.structural_equal(other(), other("vi"))

def test_different():
    for program in (other("vi - 1 + 2"), other(value="vi * 4 + vj + 1"), other(extent=15)):
        with pytest.raises(AssertionError):
            assert_structural_equal_ignore_global_symbol(program, written)
        with pytest.raises(ValueError):
            tvm.ir.assert_structural_equal(program, other())
'''


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_integer_indices_are_proved_equal(tmp_path):
    (tmp_path / "test_it.py").write_text(PROGRAM)
    flags = ("-q", "-p", "tilewright.compat.tvm", "-p", "no:cacheprovider")
    out = run("pytest", *flags, str(tmp_path))
    assert "2 functions compared equal after integer index expressions were proved equal" in out
    assert "proved" not in run("pytest", *flags, "-k", "exact or different", str(tmp_path))
    (tmp_path / "run.py").write_text(PROGRAM + "\ntest_proved()\n")
    assert "2 functions compared" in run("tilewright.compat.tvm", str(tmp_path / "run.py"))
