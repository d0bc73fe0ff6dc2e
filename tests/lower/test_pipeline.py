"""The list of passes, and programs that go through all of it."""

from __future__ import annotations

import tilewright as tw
from tilewright import _core, ir
from tilewright.testing import workloads


def test_passes_are_listed_with_reasons() -> None:
    passes = _core.list_passes()
    names = [name for name, _ in passes]
    assert names.index("check_races") < names.index("lower_prefetches") < names.index("lower_init_blocks")
    assert all(reason for _, reason in passes)


def test_passes_have_their_earlier_names_too() -> None:
    program = workloads.matmul(8, 8, 8)
    for earlier, name in (("add_in_groups", "form_dot_products"), ("turn_loads", "transpose_loads")):
        ir.assert_structural_equal(tw.lower(program, after=earlier), tw.lower(program, after=name))
    lowered = tw.lower(program, after="vectorize_loops")
    assert ir.structural_equal(*(_core.run_pass(name, lowered, "llvm") for name in ("turn_loads", "transpose_loads")))


def test_deep_nests_of_loops_compile() -> None:
    names = [f"i{k}" for k in range(100)]
    text = "@T.prim_func\ndef f(A: T.Buffer((101,), 'float32'), B: T.Buffer((101,), 'float32')):\n"
    text += f"    for {', '.join(names)} in T.grid({', '.join(['2', '1', '1', '1', '2'] * 20)}):\n"
    text += f"        B[{' + '.join(names)}] = A[{' + '.join(names)}] + T.float32(1)\n"
    program = tw.script.from_source(text.replace("T.grid(2, 1, 1, 1, 2", "T.grid(2, 2, 2, 2, 2", 1))
    tw.compile(program, schedule="as written")
