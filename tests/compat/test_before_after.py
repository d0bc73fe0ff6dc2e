"""Tests of transformations as classes, in a process of pytest of their own."""

import subprocess
import sys
import textwrap


def test_programs_before_and_after(tmp_path):
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
        import pytest, tvm.testing
        from tvm import tir
        from tvm.script import tir as T

        class Split(tvm.testing.CompareBeforeAfter):
            factor = tvm.testing.parameter(4, 8)
            extent, dtype = tvm.testing.parameters((16, "int32"), (32, "int8"))

            @pytest.fixture
            def transform(self, factor):
                def transform(mod):
                    sch = tir.Schedule(mod)
                    sch.split(sch.get_loops("A")[0], factors=[None, factor])
                    return sch.mod
                return transform

        class TestFixtures(Split):
            @tvm.testing.fixture
            def before(self, extent, dtype):
                @T.prim_func
                def func(A: T.Buffer(extent, dtype)):
                    for i in range(extent):
                        with T.block("A"):
                            vi = T.axis.spatial(extent, i)
                            A[vi] = T.Cast(dtype, 0)
                return func

            @tvm.testing.fixture
            def expected(self, extent, dtype, factor):
                @T.prim_func
                def other(A: T.Buffer(extent, dtype)):
                    for i, j in T.grid(extent // factor, factor):
                        with T.block("A"):
                            vi = T.axis.spatial(extent, i * factor + j)
                            A[vi] = T.Cast(dtype, 0)
                return other

        class TestError(Split):
            factor = tvm.testing.parameter(0)

            def before(A: T.Buffer(16)):
                for i in range(16):
                    with T.block("A"):
                        vi = T.axis.spatial(16, i)
                        A[vi] = 0.0

            expected = tir.ScheduleError

        class TestModule(tvm.testing.CompareBeforeAfter):
            class before:
                def main(A: T.Buffer(4)):
                    A[0] = 0.0

                @T.prim_func
                def other(A: T.Buffer(4)):
                    A[1] = 0.0

            expected = before

            def transform(self):
                return lambda mod: mod

        class TestDifference(TestModule):
            def expected(A: T.Buffer(4)):
                A[0] = 1.0

            def before(A: T.Buffer(4)):
                A[0] = 0.0
    """)
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tilewright.compat.tvm",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    out = done.stdout
    assert done.returncode == 1, out
    assert "TestDifference::test_compare" in out
    assert "1 failed, 6 passed" in out, out
