"""Tuning as a user does it: programs of several kinds, resuming, pasting the schedule, refusals."""

import itertools
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.search.programs import matmul, softmax, transpose

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te, timing
from tilewright.script import tir as T
from tilewright.search import report, space_samples
from tilewright.support import notes


def tiles(sch: tw.Schedule) -> None:
    i, j, k = sch.get_loops(sch.get_block("C"))
    i_tiles = sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=16))
    j_out, j_in = sch.split(j, factors=[None, sch.sample_categorical([8, 16], [0.5, 0.5])])
    sch.reorder(i_tiles[0], j_out, k, i_tiles[1], j_in)
    sch.vectorize(j_in)
    sch.decompose_reduction(sch.get_block("C"), k)


def test_a_product_is_tuned_and_the_printed_schedule_rebuilds_it():
    result = tw.tune(matmul, space=tiles, trials=4, progress=None)
    assert result.record is not None and result.stop_reason == "trials"
    a, b = np.random.default_rng(0).random((2, 64, 64), dtype=np.float32)
    c = np.empty_like(a)
    result.kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    names = {"tw": tw, "matmul": matmul}
    exec(report.runnable_schedule(result, "matmul"), names)
    assert tw.ir.structural_equal(names["sch"].mod, result.schedule.mod)


def test_an_integer_transpose_is_tuned_by_the_same_code():
    def rows(sch: tw.Schedule) -> None:
        i, _ = sch.get_loops(sch.get_block("Y"))
        sch.split(i, factors=sch.sample_perfect_tile(i, n=2))

    result = tw.tune(transpose, space=rows, trials=3, progress=None)
    x = np.arange(48 * 80, dtype=np.int32).reshape(48, 80)
    y = np.empty((80, 48), np.int32)
    result.kernel(x, y)
    np.testing.assert_array_equal(y, x.T)


def test_a_softmax_is_tuned_by_the_same_code():
    def rows(sch: tw.Schedule) -> None:
        _, j = sch.get_loops(sch.get_block("Y"))
        _, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8, 16], [1 / 3] * 3)])
        sch.vectorize(j_in)

    result = tw.tune(softmax, space=rows, trials=3, progress=None)
    x = np.random.default_rng(0).random((32, 64), dtype=np.float32)
    y = np.empty_like(x)
    result.kernel(x, y)
    power = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, power / power.sum(axis=1, keepdims=True), rtol=1e-5)


def test_a_space_that_reads_values_is_run_again_for_each_candidate():
    runs = []

    def choose(sch: tw.Schedule) -> None:
        runs.append(1)
        i, _ = sch.get_loops(sch.get_block("Y"))
        factor = sch.sample_categorical([2, 4, 8, 16], [0.25] * 4)
        if int(factor) > 2:
            sch.split(i, factors=[None, factor])

    result = tw.tune(transpose, space=choose, trials=3, progress=None)
    assert result.record is not None and len(runs) >= 4


def test_a_finished_session_measures_nothing_and_more_trials_go_on(tmp_path):
    file = tmp_path / "db" / "records.db"
    first = tw.tune(matmul, space=tiles, trials=2, database=file, progress=None)
    again = tw.tune(matmul, space=tiles, trials=2, database=file, progress=None)
    assert again.progress.earlier == 2 and again.progress.attempts == 0
    assert again.record.trace == first.record.trace
    more = tw.tune(matmul, space=tiles, trials=3, database=file, progress=None)
    assert more.progress.earlier == 2 and more.progress.trials == 3


def test_a_wrong_kernel_is_refused():
    @T.prim_func
    def short(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        T.func_attr({"global_symbol": "matmul"})
        for i, j, k in T.grid(64, 64, 63):  # one step of the sum is missing
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    class Wrong(ms.SearchStrategy):
        def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
            self.left = [ms.MeasureCandidate(tw.Schedule(tw.ir.Module({"main": short})))]

        def generate_measure_candidates(self):
            return [self.left.pop()] if self.left else None

        def notify_runner_results(self, measure_candidates, results):
            assert [result.error_msg is None for result in results] == [False]

        def post_tuning(self):
            self.left = None

    strategy = Wrong()
    result = tw.tune(matmul, space=lambda sch: None, trials=1, progress=None, seconds=20, strategy=strategy)
    assert strategy.left is None
    assert result.progress.outcomes == {"wrong_result": 1} and result.record is None
    with pytest.raises(tw.ResourceError, match="no candidate was correct"):
        _ = result.kernel


class InTurn(ms.SearchStrategy):
    """Hands out the product with one of its loops split in another way each time, and notes what it is asked."""

    def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
        self.order, self.factors = [], [2, 4, 8]

    def generate_measure_candidates(self):
        self.order.append("asked")
        if not self.factors:
            return None
        sch = tw.Schedule(tw.ir.Module({"main": matmul}))
        sch.split(sch.get_loops(sch.get_block("C"))[0], [None, self.factors.pop()])
        return [ms.MeasureCandidate(sch)]

    def notify_runner_results(self, measure_candidates, results):
        self.order.append("told")

    def post_tuning(self): ...


class Ahead(InTurn):
    def runs_ahead(self):
        return True


class NeverSays(InTurn):
    def runs_ahead(self):
        raise KeyError("no idea")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("kind", "ahead"), [(InTurn, False), (Ahead, True), (NeverSays, False)])
def test_a_strategy_says_whether_it_runs_ahead(kind: type[InTurn], ahead: bool) -> None:
    strategy = kind()
    assert ms.SearchStrategy.create("guided").runs_ahead() and not ms.SearchStrategy.create("replay-trace").runs_ahead()
    assert ms.SearchStrategy.runs_ahead(strategy) is False  # what a subclass has that does not say
    result = tw.tune(matmul, space=lambda sch: None, trials=3, progress=None, strategy=strategy)
    assert result.progress.trials == 3
    assert strategy.order[:4] == (["asked", "asked", "told", "asked"] if ahead else ["asked", "told", "asked", "told"])


def test_what_goes_wrong_in_a_space_is_told_with_its_line():
    def raises(sch: tw.Schedule) -> None:
        raise KeyError("tile")

    with pytest.raises(tw.ScheduleError, match="raised KeyError") as caught:
        tw.tune(matmul, space=raises, trials=1, progress=None)
    assert 'raise KeyError("tile")' in str(caught.value)

    def wrong_block(sch: tw.Schedule) -> None:
        sch.get_block("D")

    with pytest.raises(tw.ScheduleError, match="Cannot find a block with the name: D"):
        tw.tune(matmul, space=wrong_block, trials=1, progress=None)


def test_a_space_that_loops_is_interrupted(monkeypatch):
    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.2)

    def loops(sch: tw.Schedule) -> None:
        while True:
            pass

    with pytest.raises(tw.ResourceError, match="did not return within"):
        tw.tune(matmul, space=loops, trials=1, progress=None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trials": 0}, "at least 1 candidate"),
        ({"threads": 0}, "at least 1"),
        ({"inputs": {"D": np.zeros(3)}}, "the parameters are A, B, C"),
        ({"inputs": {"A": np.zeros((3, 3), np.float32)}}, "expected float32"),
    ],
)
def test_arguments_that_make_no_sense(arguments, message):
    with pytest.raises(tw.ArgumentError, match=message):
        tw.tune(matmul, space=tiles, progress=None, **{"trials": 1, **arguments})


def test_a_file_that_is_no_database(tmp_path):
    file = tmp_path / "records.db"
    file.write_text("these are notes, not records")
    with pytest.raises(tw.ResourceError, match="not"):
        tw.tune(matmul, space=tiles, trials=1, database=file, progress=None)
    assert file.read_text() == "these are notes, not records"


def test_tomorrow_the_best_record_is_compiled_without_a_search(tmp_path):
    file = tmp_path / "records.db"
    tw.tune(matmul, space=tiles, trials=2, database=file, progress=None)
    kernel = tw.compile(matmul, database=file)
    a, b = np.random.default_rng(0).random((2, 64, 64), dtype=np.float32)
    c = np.empty_like(a)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    with pytest.raises(tw.ResourceError, match="no record of this program"):
        tw.compile(transpose, database=file)
    with pytest.raises(tw.ResourceError, match="no such database"):
        tw.compile(matmul, database=tmp_path / "other.db")


def test_what_is_delivered_is_what_was_checked_and_timed(tmp_path):
    first = tw.tune(matmul, space=tiles, trials=6, progress=None, database=tmp_path / "records.db")
    assert first._object is not None and first._object == first.kernel._program.code.bytes
    # Finalists of an earlier session are built and checked anew.
    second = tw.tune(matmul, space=tiles, trials=6, seed=1, progress=None, database=tmp_path / "records.db")
    assert second._object is not None and second._object == second.kernel._program.code.bytes


@T.prim_func
def scaled(X: T.Buffer((256, 512), "float32"), Y: T.Buffer((256, 512), "float32")):
    for i, j in T.grid(256, 512):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


def columns_first(sch: tw.Schedule) -> None:
    i, j = sch.get_loops("Y")
    outer, inner = sch.split(j, [None, sch.sample_categorical([2, 4], [0.5, 0.5])])
    sch.reorder(outer, i, inner)
    sch.unroll(inner)


def test_a_schedule_that_is_slower_than_the_program_as_written_is_not_delivered(tmp_path):
    """The space has nothing but strides across memory."""
    file = tmp_path / "records.db"
    result = tw.tune(scaled, space=columns_first, trials=2, database=file, progress=None)
    assert sum(result.progress.outcomes.get(each, 0) for each in ("ok", "slow_stopped")) == 2
    assert not result.schedule.trace.insts
    assert tw.ir.structural_equal(result.schedule.mod, tw.Schedule(scaled).mod)
    assert result._object == result.kernel._program.code.bytes
    x = np.random.default_rng(0).random((256, 512), "float32")
    for kernel in (result.kernel, tw.compile(scaled, database=file)):
        np.testing.assert_array_equal(kernel(x), x * 2)
    # It is no trial: the session is finished, and one with more trials goes on.
    again = tw.tune(scaled, space=columns_first, trials=2, database=file, progress=None)
    assert (again.progress.earlier, again.progress.trials) == (2, 2)
    assert not again.schedule.trace.insts


def test_formulas() -> None:
    a, b = te.placeholder((16, 24), name="A"), te.placeholder((24, 32), name="B")
    k = te.reduce_axis((0, 24), name="k")
    c = te.compute((16, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((16, 32), lambda i, j: c[i, j] + b[0, j], name="D")
    x, y = (np.random.default_rng(0).integers(-4, 4, shape).astype("float32") for shape in ((16, 24), (24, 32)))
    np.testing.assert_array_equal(tw.tune(d, trials=1, progress=None).kernel(x, y), x @ y + y[0])
    np.testing.assert_array_equal(tw.tune([b, a, d], trials=1, progress=None).kernel(y, x), x @ y + y[0])
    with pytest.raises(tw.ArgumentError, match="the input 'A' is not among the parameters"):
        tw.tune([b, d])


def test_what_cannot_be_tuned_and_limits_that_make_no_sense() -> None:
    for program in (3, None, "x", tw.Schedule(matmul)):
        with pytest.raises(tw.ArgumentError, match="can be tuned, not"):
            tw.tune(program)
    for limits in (
        {"seconds": 0},
        {"seconds": -1.0},
        {"seconds": float("nan")},
        {"patience": -1},
        {"target_seconds": 0.0},
    ):
        with pytest.raises(tw.ArgumentError, match="a number above 0"):
            tw.tune(matmul, **limits)


class Broken(ms.CostModel):
    """What a model can do wrong, told by what it is asked for."""

    def __init__(self, predict: object = None, update: Exception | None = None) -> None:
        super().__init__()
        self._predict, self._update, self.asked = predict, update, 0

    def update(self, context: object, candidates: list[object], results: object) -> None:
        if self._update:
            raise self._update

    def predict(self, context: object, candidates: list[object]) -> np.ndarray:
        self.asked += 1
        if isinstance(self._predict, Exception):
            raise self._predict
        return np.zeros(len(candidates) if self._predict is None else 1_000)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Broken(predict=KeyError("x")), "KeyError: 'x'\n"),
        (Broken(predict="too many"), "predict() of a 'Broken' gave an array of the shape (1000,)"),
        (Broken(update=ValueError("no idea")), "ValueError: no idea\n"),
    ],
    ids=["predict", "scores", "update"],
)
def test_a_search_goes_on_without_a_model_that_fails(model: Broken, text: str) -> None:
    with pytest.warns(notes.CostModelWarning, match="the search continues without its cost model, which failed: "):
        result = tw.tune(matmul, trials=20, cost_model=model, progress=None)
    assert result.progress.trials == 20 and result.record is not None
    count, message = result.progress.failures["tune/cost-model"]
    assert count == 1 and "Traceback" not in message
    assert "predict() of" in text or f"{__file__}:" in message  # the line that raised
    assert message.startswith("the search continues without its cost model, which failed: ") and text in message
    assert model.asked <= 2  # before it failed


def test_evolution_in_a_space_of_steps_and_by_rules() -> None:
    evolution = ms.EvolutionarySearch(population_size=48, init_min_unmeasured=16)
    result = tw.tune(matmul, space=tiles, trials=12, strategy=evolution, progress=None)
    assert result.progress.trials == 10 and result.stop_reason == "exhausted"  # all that there are
    evolution = ms.EvolutionarySearch(population_size=48, init_min_unmeasured=16)
    result = tw.tune(matmul, trials=12, strategy=evolution, progress=None)
    assert result.progress.trials == 12 and result.record is not None and result.progress.outcomes["ok"] >= 6


def test_a_reference_that_computes_something_else_is_told() -> None:
    def space(reference: object) -> tw.Space:
        return tw.space(matmul, reference=reference)(tiles)

    with pytest.warns(notes.ReferenceWarning, match=r"the peer computes something else: C\[0, 0\]"):
        result = tw.tune(space(lambda a, b: a @ b.T), trials=1, progress=None)
    assert result.record is not None

    def raises(a: object, b: object) -> object:
        raise RuntimeError("no peer")

    with pytest.warns(notes.ReferenceWarning, match="RuntimeError: no peer"):
        assert tw.tune(space(raises), trials=1, progress=None).record is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tw.tune(space(lambda a, b: a @ b), trials=1, progress=None)


def test_the_table_says_what_was_measured_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()
    monkeypatch.setattr(timing, "_involuntary_switches", lambda threads: next(calls))
    monkeypatch.setattr(timing, "_MIN_STOLEN_FRACTION", -1.0)  # however little others took
    title = tw.tune(matmul, space=tiles, trials=1, progress=None).table().title
    assert "1 trial, contended;" in title
    monkeypatch.setattr(timing, "_involuntary_switches", lambda threads: 0)
    assert "1 trial, alone;" in tw.tune(matmul, space=tiles, trials=1, progress=None).table().title


def test_a_copy_of_the_records_serves_another_user(tmp_path: Path) -> None:
    """In a folder that nobody may write, as a user whom the file does not belong to."""
    records = tmp_path / "records.db"
    first = tw.tune(transpose, trials=2, database=records, progress=None)
    assert first.record is not None
    tw.compile(transpose, database=records)  # what Python loads late is loaded before the user changes
    folder = Path(tempfile.mkdtemp(prefix="tilewright-elsewhere-"))
    come, go = os.pipe()
    try:
        shutil.copy(records, folder / "mine.db")
        (folder / "mine.db").chmod(0o444)
        folder.chmod(0o555)
        child = os.fork()
        if child == 0:
            try:
                os.chdir(folder)
                if os.geteuid() == 0:
                    os.setuid(65534)
                kernel = tw.compile(transpose, database="mine.db")
                x, y = np.arange(48 * 80, dtype="int32").reshape(48, 80), np.zeros((80, 48), "int32")
                kernel(x, y)
                text = f"{os.geteuid()} {kernel.schedule} {(y == x.T).all()} {sorted(os.listdir())}"
            except BaseException as error:
                text = repr(error)
            os.write(go, text.encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(go)
        with open(come, "rb") as stream:
            text = stream.read().decode()
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    assert text == f"{user} recorded True ['mine.db']"
