"""How the program as written is judged before candidates are compared with it."""

import itertools

import numpy as np
import pytest

import tilewright as tw
from interpreter.programs import INDEX_LIMITS, PROGRAMS
from tilewright import _core, te
from tilewright.script import tir as T
from tilewright.search import reference_check, report
from tilewright.search.expectations import Expectations
from tilewright.search.reference_check import ReferenceCheck, lowest_intermediate_precision
from tilewright.task.arguments import aligned, make_arrays
from tilewright.task.reference import sample_points
from tilewright.task.task import task_of


def nothing(sch: tw.Schedule) -> None:
    """The program as it is, and nothing to decide."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kind_of_program_can_be_tuned(name: str) -> None:
    program = PROGRAMS[name]
    inputs = {}
    if name in INDEX_LIMITS:
        inputs["I"] = np.random.default_rng(0).integers(0, INDEX_LIMITS[name], 50).astype(np.int32)
    result = tw.tune(program, space=nothing, trials=1, inputs=inputs, progress=None)
    assert result.record is not None and result.verdict is not None
    assert result.verdict.extent in ("full", "sampled") and result.verdict.checked
    assert result.record.verification["program"] == result.verdict.extent


@T.prim_func
def large_padded_conv2d(
    X: T.Buffer((32, 56, 56), "float32"),
    W: T.Buffer((32, 32, 3, 3), "float32"),
    Y: T.Buffer((32, 56, 56), "float32"),
):
    pad = T.alloc_buffer((32, 58, 58))
    for c, h, w in T.grid(32, 58, 58):
        with T.block("pad"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            pad[vc, vh, vw] = T.if_then_else(
                vh >= 1 and vh < 57 and vw >= 1 and vw < 57, X[vc, vh - 1, vw - 1], T.float32(0)
            )
    for o, h, w, c, r, s in T.grid(32, 56, 56, 32, 3, 3):
        with T.block("Y"):
            vo, vh, vw, vc, vr, vs = T.axis.remap("SSSRRR", [o, h, w, c, r, s])
            with T.init():
                Y[vo, vh, vw] = T.float32(0)
            Y[vo, vh, vw] += pad[vc, vh + vr, vw + vs] * W[vo, vc, vr, vs]


def test_a_padded_convolution_is_tuned_and_sampled_at_full_size() -> None:
    def vectors(sch: tw.Schedule) -> None:
        block = sch.get_block("Y")
        o, h, w, c, r, s = sch.get_loops(block)
        w_out, w_in = sch.split(w, [None, sch.sample_categorical([8, 14], [0.5, 0.5])])
        sch.reorder(o, h, w_out, c, r, s, w_in)
        sch.vectorize(w_in)

    result = tw.tune(large_padded_conv2d, space=vectors, trials=2, progress=None)
    assert result.verdict is not None and result.verdict.extent == "sampled"
    assert "at full size" in result.verdict.note
    generator = np.random.default_rng(0)
    x, w = (generator.standard_normal(shape).astype(np.float32) for shape in ((32, 56, 56), (32, 32, 3, 3)))
    y = np.empty_like(x)
    result.kernel(x, w, y)
    around = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    expected = sum(
        np.einsum("oc,chw->ohw", w[:, :, r, s], around[:, r : r + 56, s : s + 56])
        for r, s in itertools.product(range(3), range(3))
    )
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_a_wrong_reference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One element of what the program as written computes is changed behind its back."""
    honest = Expectations.judge

    def forge(self: Expectations, outputs: dict[str, bytes]) -> str:
        y = np.frombuffer(outputs["Y"], np.float32).copy()
        y[0] += 1
        return honest(self, {"Y": y.tobytes()})

    monkeypatch.setattr(Expectations, "judge", forge)
    for name in ("max_pool", "scan"):  # sampled, and compared in full
        with pytest.raises(tw.InternalError, match=r"differs from the interpreter: Y\[0"):
            tw.tune(PROGRAMS[name], space=nothing, trials=1, progress=None)


def test_sampled_results_are_compared_by_one_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    """It depends on the size of all results, which takes longer to find than to compare some of them."""
    allowance, sizes = _core.allowance, []

    def counted(results: bytes, *how: object) -> tuple[float, float]:
        sizes.append(len(results))
        return allowance(results, *how)

    monkeypatch.setattr(_core, "allowance", counted)
    expectations = Expectations(task_of(PROGRAMS["max_pool"]), {}, 0)
    expectations.arguments()
    check = expectations.check
    assert check is not None and not check.expected
    (output,) = check.outputs
    want = np.zeros(output.shape, output.dtype)
    for point, value in (points := check.sampled_elements[output.name]):
        want[point] = value
    assert check.compare({output.name: want.tobytes()}) == "sampled"
    assert len(points) > 1 and sizes == [want.nbytes]


def test_what_cannot_be_checked_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def chain(Y: T.Buffer((4,), "float32")):
        for i in range(4):
            Y[i] = T.float32(0)
        for i in range(4_000_000):
            with T.block("Y"):
                vi = T.axis.opaque(4_000_000, i)
                Y[vi % 4] = Y[(vi + 3) % 4] * T.float32(0.5) + T.float32(1)

    monkeypatch.setattr(reference_check, "CHECK_SECONDS", 0.05)
    result = tw.tune(chain, space=nothing, trials=1, progress=None)
    assert result.record is not None and result.record.verification["program"] == "unchecked"
    assert result.verdict is not None and not result.verdict.checked
    assert "unchecked at full size" in result.verdict.note
    row = report.Row("best found", 1, 1e-3, 1.0, 1.0, "memory", 1.2, exact=False)
    untuned = report.Row("as written", 1, 1e-4, 1.0, 1.0, "memory", 0.5)
    summary = report.Summary(result, "chain", (untuned, row), "", "", "", ())
    assert [table.title for table in summary.tables("chain")] == [
        "chain, 1 thread, alone, unscheduled program unchecked"
    ]
    assert [note[0] for note in summary.remarks[:2]] == ["~", "!"]
    assert summary.remarks[2].startswith("the unscheduled program is faster than all candidates")


def test_a_wrong_program_ends_the_search_with_its_own_shapes() -> None:
    @T.prim_func
    def beyond(X: T.Buffer((300, 40), "float32"), Y: T.Buffer((300, 40), "float32")):
        for i, j in T.grid(300, 40):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi + 1, vj]

    with pytest.raises(tw.ScriptError, match=r"the shape of 'X' is \(300, 40\)") as caught:
        tw.tune(beyond, space=nothing, trials=1, progress=None)
    assert caught.value.code == "interpret/out-of-bounds"


def test_a_race_is_found() -> None:
    @T.prim_func
    def racing(X: T.Buffer((300, 70), "float32"), Y: T.Buffer((70,), "float32")):
        for i in T.parallel(300):
            for j in range(70):
                with T.block("Y"):
                    vi = T.axis.opaque(300, i)
                    vj = T.axis.spatial(70, j)
                    Y[vj] = X[vi, vj]

    with pytest.raises(tw.ScriptError) as caught:
        tw.tune(racing, space=nothing, trials=1, progress=None)
    assert caught.value.code == "interpret/race"


def test_points_reach_corners_and_edges() -> None:
    points = sample_points((50, 60), 24, np.random.default_rng(0))
    assert points[:2] == [(0, 0), (49, 59)] and len(set(points)) == len(points) == 24
    assert any(i in (0, 49) and 1 < j < 58 for i, j in points)
    assert any(1 < i < 48 and 1 < j < 58 for i, j in points)
    assert sample_points((), 24, np.random.default_rng(0)) == [()]
    assert sample_points((3, 0), 24, np.random.default_rng(0)) == []


def test_edges_of_tolerance() -> None:
    """NaN is right where the interpreter says so; a small result is held to the size of all of them."""

    @T.prim_func
    def roots(X: T.Buffer((40, 40), "float32"), Y: T.Buffer((40, 40), "float32")):
        for i, j in T.grid(40, 40):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.sqrt(X[vi, vj])

    task = task_of(roots)
    arrays = make_arrays(task, {}, 0)
    check = ReferenceCheck(task, {}, arrays)
    check._interpret_points()
    with np.errstate(invalid="ignore"):
        right = np.sqrt(arrays["X"])
    assert check.compare({"Y": right.tobytes()}) == "sampled"
    wrong = np.nan_to_num(right)
    assert np.isnan(right).any()
    with pytest.raises(tw.InternalError, match="not nan"):
        check.compare({"Y": wrong.tobytes()})


def test_arrays_are_timed_where_vectors_do_not_cross_lines() -> None:
    for shape in ((), (3,), (5, 7), (0, 4)):
        array = np.ones(shape, np.float32)
        copy = aligned(array)
        np.testing.assert_array_equal(copy, array)
        assert (copy.size == 0 or copy.ctypes.data % 64 == 0) and copy.flags.c_contiguous and copy.dtype == array.dtype


def test_rounding_that_grows_is_no_defect(tmp_path):
    """A map that is far from contracting: results for random values cannot be told from wrong ones, but for zeros."""

    @T.prim_func
    def folded(X: T.Buffer((16,), "float32"), H: T.Buffer((80, 16), "float32")):
        for i in range(16):
            H[0, i] = X[i]
        for t, i in T.grid(79, 16):
            with T.block("H"):
                vt, vi = T.axis.remap("SS", [t, i])
                h: T.float32 = T.abs(H[vt, vi])
                H[vt + 1, vi] = T.float32(3.7) * h - T.float32(3.7) * h * h

    said = r"(?s)random values rounding grows too much in 'folded'.*inputs=.'X': array"
    with pytest.raises(tw.ArgumentError, match=said) as error:
        tw.tune(folded, trials=2, progress=None, database=tmp_path / "t.db")
    assert error.value.code == "tune/rounding"
    zeros = {"X": np.zeros(16, np.float32)}
    result = tw.tune(folded, trials=2, progress=None, database=tmp_path / "t.db", inputs=zeros)
    assert result.record is not None


@T.prim_func
def fraction(Y: T.Buffer((2000,), "float32")):
    for i in range(2000):
        with T.block("Y"):
            v = T.axis.spatial(2000, i)
            x: T.float32 = T.Cast("float32", v) * T.float32(0.4419889450073242)
            Y[v] = x - T.floor(x)


@T.prim_func
def waves(X: T.Buffer((2000,), "float32"), Y: T.Buffer((2000,), "float32")):
    for i in range(2000):
        with T.block("Y"):
            v = T.axis.spatial(2000, i)
            Y[v] = T.sin(X[v] * T.float32(1000.3) + T.float32(0.7))


@T.prim_func
def positions(X: T.Buffer((512, 64), "float32"), Y: T.Buffer((512, 64), "float32")):
    for p, i in T.grid(512, 64):
        with T.block("Y"):
            vp, vi = T.axis.remap("SS", [p, i])
            step: T.float32 = T.exp(T.Cast("float32", vi // 2 * 2) * T.float32(-0.143911568))
            Y[vp, vi] = X[vp, vi] + T.sin(T.Cast("float32", vp) * step)


@pytest.mark.parametrize("program", [fraction, waves, positions], ids=["fraction", "waves", "positions"])
def test_results_whose_rounding_is_known_to_grow_are_tuned(program):
    """Of numbers that indices make, too, which no arrays change: a product and a sum at once round once."""
    result = tw.tune(program, trials=4, progress=None)
    assert result.record is not None and result.progress.outcomes.get("wrong_result", 0) == 0


def test_rounding_is_no_excuse():
    """What differs by far more than a rounding can make it is wrong, although a kernel that fuses nothing is right."""
    task = task_of(waves)
    arrays = make_arrays(task, {}, 0)
    check = ReferenceCheck(task, {}, arrays)
    check.prepare()
    values = {name: array.copy() for name, array in arrays.items()}
    tw.compile(waves, schedule="as written")(*values.values())
    check.compare({"Y": values["Y"].tobytes()})
    assert check.extra_tolerance.get("Y", 0.0) < 1e-2
    with pytest.raises((tw.InternalError, tw.ArgumentError)):
        check.compare({"Y": (values["Y"] + np.float32(0.5)).tobytes()})


@T.prim_func
def two_layers(
    X: T.Buffer((48, 64), "bfloat16"),
    V: T.Buffer((256, 64), "bfloat16"),
    W: T.Buffer((32, 256), "bfloat16"),
    Y: T.Buffer((48, 32), "float32"),
):
    h = T.alloc_buffer((48, 256))
    g = T.alloc_buffer((48, 256), "bfloat16")
    for i, j, k in T.grid(48, 256, 64):
        with T.block("h"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                h[vi, vj] = 0.0
            h[vi, vj] += T.Cast("float32", X[vi, vk]) * T.Cast("float32", V[vj, vk])
    for i, j in T.grid(48, 256):
        with T.block("g"):
            vi, vj = T.axis.remap("SS", [i, j])
            g[vi, vj] = T.Cast("bfloat16", T.max(h[vi, vj], T.float32(0)))
    for i, j, k in T.grid(48, 32, 256):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = 0.0
            Y[vi, vj] += T.Cast("float32", g[vi, vk]) * T.Cast("float32", W[vj, vk])


@pytest.mark.parametrize("seed", range(3))
def test_what_is_rounded_to_a_narrow_type_on_the_way_may_be_its_neighbor(seed: int) -> None:
    result = tw.tune(two_layers, trials=3, seed=seed, progress=None)
    assert result.record is not None and result.verdict is not None
    assert "intermediate values are bfloat16: results in Y may differ by" in result.verdict.note
    assert not {"wrong_result"} & set(result.progress.outcomes)


def test_copies_of_narrow_numbers_are_no_roundings() -> None:
    pad = te.placeholder((8, 8), "bfloat16", name="A")
    padded = te.compute((10, 8), lambda i, j: te.if_then_else(i < 8, pad[i, j], te.const(0, "bfloat16")), name="P")
    total = te.compute((10, 8), lambda i, j: padded[i, j].astype("float32") + 1.0, name="C")
    assert lowest_intermediate_precision(te.create_prim_func([pad, total])) is None
    assert lowest_intermediate_precision(two_layers) == "bfloat16"
