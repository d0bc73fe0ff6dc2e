"""Products of products: what lies between them is made and used for some rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.heuristics.cpu.programs import check_results
from tests.samples import samples

import tilewright as tw
from tilewright import ir, te
from tilewright.heuristics import cpu
from tilewright.testing import everyday

#: whose second levels hold little, so that small programs do what large ones do on others
SMALL = ["llvm -mcpu=haswell -num-cores=2 -l2-bytes=32768", "llvm -mcpu=skylake-avx512 -num-cores=1 -l2-bytes=32768"]


def scheduled(program: ir.PrimFunc, target: str, best: bool = True, seed: int = 0) -> tw.Schedule:
    sch = tw.Schedule(program, seed=seed)
    cpu.schedule_for_cpu(sch, here(target), best=best)
    return sch


def here(target: str) -> tw.Target:
    """The target, if this processor runs its code; else a smaller one with its caches."""
    runs = set(tw.Target(target).features) <= set(tw.Target("native").features)
    return tw.Target(target if runs else target.replace("skylake-avx512", "haswell"))


def parallel_loops_around(sch: tw.Schedule, *names: str) -> set[ir.Var]:
    return {sch.get(sch.get_loops(name)[0]).loop_var for name in names}


def assert_right(program: ir.PrimFunc, choices: dict[str, tuple[bool, ...]], seed: int = 0) -> None:
    """By the best schedules for these targets (True), and by sampled ones (False)."""
    kernels = [
        tw.compile(scheduled(program, target, best, seed), target=here(target))
        for target, kinds in choices.items()
        for best in kinds
    ]
    is_wide = all(buffer.dtype == "float64" for buffer in program.buffer_map.values())
    check_results(program, kernels, seed, tolerance=1e-10 if is_wide else 1e-4)


def chain(rng: np.random.Generator) -> ir.PrimFunc:
    """Two products of operands that lie in any order, with rows and a batch or without, heads that share keys or not,
    what an attention has between them or less, and a step behind or none; sizes are odd ones as well."""
    sizes = {
        **{"b": int(rng.choice([2, 3, 4])), "i": int(rng.choice([64, 96, 67, 160, 48])), "d": int(rng.choice([8, 20]))},
        **{"j": int(rng.choice([64, 50, 96, 33])), "e": int(rng.choice([16, 24, 5]))},
    }
    dtype = str(rng.choice(["float32", "float64"]))
    batch = "b" * int(rng.integers(2))

    def order(letters: str) -> str:
        return "".join(rng.permutation(list(letters))) if rng.integers(2) else letters

    shared = int(rng.choice([1, 1, 2, 4]))

    def tensor(name: str, letters: str) -> tuple[Any, str]:
        extents = {**sizes, "B": -(-sizes["b"] // shared)}
        return te.placeholder([extents[letter] for letter in letters], name=name, dtype=dtype), letters

    def at(operand: tuple[Any, str], **axes: Any) -> Any:
        return operand[0][tuple(axes["b"] // shared if letter == "B" else axes[letter] for letter in operand[1])]

    def made(name: str, letters: str, value: Any, over: str = "", combine: Any = te.sum) -> tuple[Any, str]:
        def compute(*indices: Any) -> Any:
            axes = dict(zip(letters, indices, strict=True))
            reduced = {letter: te.reduce_axis((0, sizes[letter]), name=letter) for letter in over}
            result = value(**axes, **reduced)
            return combine(result, axis=list(reduced.values())) if over else result

        return te.compute([sizes[letter] for letter in letters], compute, name=name), letters

    q = tensor("Q", order(f"{batch if rng.integers(4) else ''}id"))
    keys = batch if shared == 1 else batch.upper()
    k, v = tensor("K", order(keys + "jd")), tensor("V", order(f"{keys if rng.integers(4) else ''}je"))
    score = made("S", order(batch + "ij"), lambda **at_: at(q, **at_) * at(k, **at_), "d")
    parameters = [q[0], k[0], v[0]]
    kind = rng.choice(["nothing", "scale", "mask", "softmax", "late softmax", "causal"])
    weight, total = score, None
    if kind == "mask":
        mask = tensor("M", order("ij"))
        parameters.append(mask[0])
        weight = made("P", order(batch + "ij"), lambda **at_: te.tanh(at(score, **at_)) + at(mask, **at_))
    elif kind == "causal":
        weight = made(
            "P",
            score[1],
            lambda **at_: te.if_then_else(at_["j"] <= at_["i"], te.exp(-at(score, **at_)), te.const(0, dtype)),
        )
    elif kind != "nothing":
        weight = made("P", order(batch + "ij"), lambda **at_: te.tanh(at(score, **at_)) + te.const(2, dtype))
        if "softmax" in kind:
            power = weight
            total = made("T", batch + "i", lambda **at_: at(power, **at_), "j")
            if kind == "softmax":
                sums, total = total, None
                weight = made("N", batch + "ij", lambda **at_: at(power, **at_) / at(sums, **at_))
    out = made("O", order(batch + "ie"), lambda **at_: at(weight, **at_) * at(v, **at_), "j")
    results = [out]
    if total is not None:
        sums = total
        results = [made("R", out[1], lambda **at_: at(out, **at_) / at(sums, **at_))]
    elif rng.integers(3) == 0:
        results = [made("R", out[1], lambda **at_: at(out, **at_) * te.const(0.5, dtype) + te.const(1, dtype))]
    if rng.integers(5) == 0:
        results.append(score)  # which callers get, too
    return te.create_prim_func([*parameters, *(result[0] for result in results)])


@pytest.mark.parametrize("seed", range(samples(15)))
def test_chains_are_right(seed: int) -> None:
    """The best schedule for both processors, and one that is sampled for one of them."""
    one, other = SMALL if seed % 2 else SMALL[::-1]
    program = chain(np.random.default_rng(seed))
    assert_right(program, {one: (True, False), other: (True,)}, seed)


def test_most_of_them_run_in_bands() -> None:
    banded = sum(
        "compute_at(S" in str(scheduled(chain(np.random.default_rng(seed)), SMALL[1]).trace) for seed in range(40)
    )
    assert banded >= 20


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("shape", [(3, 64, 16), (1, 128, 24), (2, 100, 40)])
def test_an_attention_runs_for_some_rows_at_a_time(shape: tuple[int, int, int], target: str) -> None:
    program = everyday.attention(*shape)
    assert_right(program, {target: (True,)})
    sch = scheduled(program, target)
    around = parallel_loops_around(sch, "score_update", "top", "power", "total", "weight", "O_update")
    assert len(around) == 1 and sch.get(sch.get_loops("O_update")[0]).kind == ir.ForKind.PARALLEL
    # What all rows have in common is turned round once.
    assert around.isdisjoint(parallel_loops_around(sch, "K_global"))


def test_rows_of_a_prime_number_are_one_band_of_each_head() -> None:
    sch = scheduled(everyday.attention(3, 37, 8), "llvm -mcpu=haswell -num-cores=1 -l2-bytes=8192")
    loop = sch.get(sch.get_loops("score_update")[0])
    assert loop.extent.value == 3 and loop.kind == ir.ForKind.PARALLEL
    assert len(parallel_loops_around(sch, "score_update", "weight", "O_update")) == 1


@pytest.mark.parametrize(
    ("program", "l2"),
    [(everyday.attention(2, 64, 16), 1 << 20), (everyday.attention(1, 67, 16), 1 << 13)],
    ids=["all is near", "no part has whole rows"],
)
def test_others_run_one_step_after_the_other(program: ir.PrimFunc, l2: int) -> None:
    sch = scheduled(program, f"llvm -mcpu=haswell -num-cores=1 -l2-bytes={l2}")
    assert len(parallel_loops_around(sch, "score_update", "O_update")) == 2


def test_long_sums_do_not_bring_their_operands_again() -> None:
    x, w = te.placeholder((128, 512), name="X"), te.placeholder((512, 640), name="W")
    u = te.placeholder((640, 512), name="U")
    k, m = te.reduce_axis((0, 512), name="k"), te.reduce_axis((0, 640), name="m")
    h = te.compute((128, 640), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="H")
    g = te.compute((128, 640), lambda i, j: te.tanh(h[i, j]), name="G")
    y = te.compute((128, 512), lambda i, j: te.sum(g[i, m] * u[m, j], axis=m), name="Y")
    sch = scheduled(te.create_prim_func([x, w, u, y]), "llvm -mcpu=haswell -num-cores=1 -l2-bytes=262144")
    assert len(parallel_loops_around(sch, "H_rf_update", "Y_rf_update")) == 2


@pytest.mark.parametrize("group", [1, 2, 4])
def test_heads_that_share_keys_are_heads(group: int) -> None:
    """Their rows run in bands as those of others do, and not four heads of one row at a time."""
    q, k, v = (te.placeholder((96, 4 // (group if name != "Q" else 1), 16), name=name) for name in "QKV")
    d, j = te.reduce_axis((0, 16), name="d"), te.reduce_axis((0, 96), name="j")
    s = te.compute((4, 96, 96), lambda h, a, b: te.sum(q[a, h, d] * k[b, h // group, d], axis=d), name="S")
    p = te.compute((4, 96, 96), lambda h, a, b: te.exp(s[h, a, b]), name="P")
    o = te.compute((96, 4, 16), lambda a, h, e: te.sum(p[h, a, j] * v[j, h // group, e], axis=j), name="O")
    program = te.create_prim_func([q, k, v, o])
    assert_right(program, {SMALL[0]: (True,)})
    sch = scheduled(program, SMALL[0])
    assert len(parallel_loops_around(sch, "S_update", "O_update")) == 1
    rows = [sch.get(loop).extent.value for loop in sch.get_loops("P")]
    assert rows[-2:] != [1, 96] and max(rows[:-1]) >= 16
