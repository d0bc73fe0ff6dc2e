"""Cost models, against finite differences, against one another, and as Python subclasses."""

from __future__ import annotations

import io
import itertools
import sys
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
from tests.processes import in_process

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cost_model.feature_extractor import RandomFeatureExtractor
from tilewright.cost_model.pack_sum import PackSum
from tilewright.meta_schedule import cost_model as cm
from tilewright.support import limits
from tilewright.testing.workloads import matmul


def candidate(tile: int = 0) -> SimpleNamespace:
    sch = tw.Schedule(matmul(64, 64, 64))
    if tile:
        loops = sch.get_loops(sch.get_block("C"))
        sch.split(loops[0], [None, tile])
    return SimpleNamespace(sch=sch, args_info=[])


def result(seconds: float | None) -> SimpleNamespace:
    return SimpleNamespace(run_secs=None if seconds is None else [seconds], error_msg=None)


def context() -> _core.TuneContext:
    made = _core.TuneContext()
    made.target = tw.Target("llvm -mcpu=znver4 -num-cores=2")
    return made


# ---- the published objective ---------------------------------------------------------------------------------------


def pack(rng: np.random.Generator) -> tuple[PackSum, np.ndarray]:
    xs = [rng.random((int(rows), 3)).astype("float32") for rows in rng.integers(1, 5, 7)]
    return PackSum(xs, rng.random(7).astype("float32")), rng.random(sum(map(len, xs)))


def test_gradient_is_that_of_the_losses_of_the_sums():
    packed, rows = pack(np.random.default_rng(0))

    def loss(predictions):
        sums = packed.predict_with_score(predictions)
        return np.sum(packed.labels * (sums - packed.labels) ** 2) / 2

    gradient, second = packed.obj_square_error(rows)
    step = 1e-6
    for i in range(len(rows)):
        moved = rows.copy()
        moved[i] += step
        assert np.isclose((loss(moved) - loss(rows)) / step, gradient[i], atol=1e-4)
    assert (second == packed.labels[packed.candidate_of_row]).all()


def test_error_is_that_of_the_sums_over_the_rows():
    packed, rows = pack(np.random.default_rng(1))
    expected = []
    for i, row in enumerate(packed.candidate_of_row):
        same = packed.candidate_of_row == packed.candidate_of_row[i]
        expected.append((rows[same].sum() - packed.labels[row]) ** 2)
    assert np.isclose(packed.rmse(rows)[1], np.sqrt(np.mean(expected)))


def test_peak_score_of_perfect_and_reversed_orders():
    xs = [np.ones((1, 1), "float32")] * 4
    labels = np.array([0.25, 1, 0.5, 0.75], "float32")
    packed = PackSum(xs, labels)
    assert packed.average_peak_score(labels.astype("float64"), 2) == ("a-peak@2", 1.0)
    assert np.isclose(packed.average_peak_score(-labels.astype("float64"), 3)[1], (0.25 + 0.5 + 0.75) / 3)


@pytest.mark.parametrize(("labels", "score"), [([0, 0, 0], 1.0), ([-1, 0, -2], 0.5), ([-2, -2, -1], 0.0)])
def test_peak_score_where_no_label_is_above_0(labels, score):
    """By the order: the best of the first and of the first two."""
    packed = PackSum([np.ones((1, 1), "float32")] * 3, np.array(labels, "float32"), weights=np.ones(3))
    assert packed.average_peak_score(np.array([3.0, 2.0, 1.0]), 2) == ("a-peak@2", score)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [cm.XGBModel, cm.ResidualModel])
def test_a_model_begins_with_one_candidate(kind):
    for seconds in (0.5, None):
        model = kind(extractor=Known(), **({"prior": Flat()} if kind is cm.ResidualModel else {}))
        model.update(context(), speeds([1]), [result(seconds)])
        assert np.isfinite(model.predict(context(), speeds([1, 2]))).all()


# ---- learning ------------------------------------------------------------------------------------------------------


class Known(cm.xgb_model.FeatureExtractor):
    """Features that say how fast a candidate is."""

    def extract_from(self, context, candidates):
        return [np.array([[c.speed, 1.0], [0.0, c.speed]]) for c in candidates]


class Flat(ms.CostModel):
    """Expects the same of all."""

    def predict(self, context, candidates):
        return np.ones(len(candidates))


def speeds(values):
    return [SimpleNamespace(speed=float(v)) for v in values]


def test_learned_scores_are_relative_throughput():
    model = cm.XGBModel(extractor=Known(), num_warmup_samples=10)
    train = np.linspace(0.1, 1, 40)
    model.update(context(), speeds(train), [result(1 / v) for v in train])
    scores = model.predict(context(), speeds([0.2, 0.5, 0.9]))
    assert np.allclose(scores, [0.2, 0.5, 0.9], atol=0.08)


def test_trees_start_no_threads():
    """Those of OpenMP would wait in busy loops after each update and each prediction, beside kernels that are being
    measured."""
    done = in_process("""
        import os
        import numpy as np
        import xgboost
        from search.test_cost_models import Known, cm, context, result, speeds

        before = len(os.listdir("/proc/self/task"))
        model = cm.XGBModel(extractor=Known(), num_warmup_samples=10)
        train = np.linspace(0.1, 1, 40)
        model.update(context(), speeds(train), [result(1 / v) for v in train])
        model.predict(context(), speeds(train))
        print(len(os.listdir("/proc/self/task")) - before)
    """)
    assert done.stdout == "0\n", done.stderr


def test_before_warm_up_scores_are_random_but_repeatable():
    def scores():
        return cm.XGBModel(extractor=Known()).predict(context(), speeds(range(5)))

    assert (scores() == scores()).all()
    assert ((scores() >= 0) & (scores() <= 1)).all()


def test_failures_are_slowest_and_labels_shift_with_the_best():
    model = cm.XGBModel(extractor=Known(), num_warmup_samples=1)
    model.update(context(), speeds([1, 2]), [result(2.0), result(None)])
    group = model.data[""]
    assert (group.min_cost / group.costs).tolist() == pytest.approx([1, 0], abs=1e-6)
    model.update(context(), speeds([3]), [result(1.0)])
    assert (group.min_cost / group.costs).tolist() == pytest.approx([0.5, 0, 1], abs=1e-6)


@pytest.mark.parametrize("kind", [cm.XGBModel, cm.ResidualModel])
def test_a_program_of_which_nothing_worked_has_nothing_fast(kind):
    prior = {"prior": Flat()} if kind is cm.ResidualModel else {}
    model = kind(extractor=Known(), num_warmup_samples=1, **prior)
    model.update(context(), speeds([0.5, 0.6]), [result(None), result(None)])
    throughput = model._labels(model.data[""])[1]
    assert throughput.max() <= 0.01
    assert np.isfinite(model.predict(context(), speeds([0.5, 0.9]))).all()
    other = context()
    other.module = tw.ir.IRModule({"main": matmul(64, 64, 64)})
    train = np.linspace(0.1, 1, 40)
    model.update(other, speeds(train), [result(1 / v) for v in train])
    failed, fast = model.predict(other, speeds([0.5, 0.9]))
    assert np.isfinite([failed, fast]).all() and fast > failed


def test_training_waits_for_a_fifth_more(monkeypatch):
    model = cm.XGBModel(extractor=Known(), num_warmup_samples=1)
    trained = []
    monkeypatch.setattr(cm.XGBModel, "_train", lambda self: trained.append(self.data_size))
    for _ in range(12):
        model.update(context(), speeds([1]), [result(1.0)])
    assert trained == [1, 2, 3, 4, 5, 6, 8, 10, 12]


@pytest.mark.parametrize("kind", [cm.XGBModel, cm.ResidualModel])
def test_saved_and_loaded_models_are_the_same(kind, tmp_path):
    options = {"extractor": RandomFeatureExtractor(seed=3), "num_warmup_samples": 5}
    model = kind(**options)
    given = [candidate(tile) for tile in (0, 2, 4, 8, 16, 32)]
    model.update(context(), given, [result(1.0 + i) for i in range(6)])
    path = str(tmp_path / "model.tar")
    model.save(path)
    state = model.extractor.random_state
    before = model.predict(context(), given)
    other = kind(extractor=RandomFeatureExtractor(), num_warmup_samples=5)
    other.load(path)
    other.extractor.random_state = state
    assert (other.predict(context(), given) == before).all()
    assert other.data_size == 6 and list(other.data) == list(model.data)
    for mine, theirs in zip(model.data.values(), other.data.values(), strict=True):
        assert (mine.costs == theirs.costs).all()
        assert all((a == b).all() for a, b in zip(mine.features, theirs.features, strict=True))


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "model.tar"
    path.write_bytes(b"nothing")
    with pytest.raises(tw.ResourceError, match="is not a saved cost model") as caught:
        cm.XGBModel().load(str(path))
    assert caught.value.code == "cost_model/file"


def test_files_that_are_damaged_leave_the_model_as_it_was(tmp_path):
    model = cm.XGBModel(num_warmup_samples=1)
    model.update(context(), [candidate(2), candidate(4)], [result(1.0), result(2.0)])
    model.save(whole := str(tmp_path / "model.tar"))
    before = model.predict(context(), [candidate(2), candidate(4)])
    with tarfile.open(whole) as archive:
        parts = {entry.name: archive.extractfile(entry).read() for entry in archive.getmembers()}
    other = io.BytesIO()
    np.savez(other, rows=np.zeros(3))
    data, trees = parts["data.npz"], parts["model.ubj"]
    path = str(tmp_path / "damaged.tar")
    for damaged in (b"", data[:100], data[:-40], other.getvalue()), (trees[:50], b"x"):
        for part in damaged:
            name = "data.npz" if damaged[0] == b"" else "model.ubj"
            with tarfile.open(path, "w") as archive:
                for each, content in (parts | {name: part}).items():
                    (entry := tarfile.TarInfo(each)).size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
            with pytest.raises(tw.ResourceError, match="is not a saved cost model") as caught:
                model.load(path)
            assert caught.value.code == "cost_model/file"
            assert (model.predict(context(), [candidate(2), candidate(4)]) == before).all()
    model.load(whole)
    assert (model.predict(context(), [candidate(2), candidate(4)]) == before).all()


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x93NUMPY"])
def test_a_random_model_refuses_other_files(content, tmp_path):
    path = tmp_path / "state.npy"
    path.write_bytes(content)
    with pytest.raises(tw.ResourceError, match="is not a saved random model"):
        cm.RandomModel().load(str(path))


@pytest.mark.parametrize("scores", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [-1.0, 1.0]])
def test_priors_may_know_nothing_of_some_candidates(scores):
    class Prior(HalfRight):
        def predict(self, context, candidates):
            return np.resize(scores, len(candidates))

    model = cm.ResidualModel(prior=Prior(), extractor=Known(), num_warmup_samples=1)
    model.update(context(), speeds([1, 2, 3, 4]), [result(1 / speed) for speed in (1, 2, 3, 4)])
    assert np.isfinite(model.predict(context(), speeds([1, 2, 3, 4]))).all()


def test_random_model_goes_on_where_it_was_saved(tmp_path):
    model = cm.RandomModel(seed=1)
    model.predict(context(), range(7))
    model.save(str(tmp_path / "state.npy"))
    expected = model.predict(context(), range(5))
    assert (cm.RandomModel(path=str(tmp_path / "state.npy")).predict(context(), range(5)) == expected).all()


# ---- prior and residual --------------------------------------------------------------------------------------------


class HalfRight(cm.CostModel):
    """A prior that knows only the larger part of the speed."""

    def predict(self, context, candidates):
        return np.array([c.speed for c in candidates])


class Flag(cm.xgb_model.FeatureExtractor):
    """Features that show only what the prior misses."""

    def extract_from(self, context, candidates):
        return [np.array([[float(c.slow)]]) for c in candidates]


def test_trees_learn_what_the_prior_misses():
    def made(count, seed):
        rng = np.random.default_rng(seed)
        drawn = zip(rng.uniform(0.2, 1, count), rng.integers(0, 2, count), strict=True)
        return [SimpleNamespace(speed=float(s), slow=int(f)) for s, f in drawn]

    def truth(c):
        return c.speed * (0.4 if c.slow else 1.0)

    def error(model, test):
        scores = model.predict(context(), test)
        real = np.array([truth(c) for c in test])
        return np.mean(np.argsort(np.argsort(scores)) != np.argsort(np.argsort(real)))

    train, test = made(40, 0), made(30, 1)
    model = cm.ResidualModel(prior=HalfRight(), extractor=Flag(), num_warmup_samples=16)
    alone = np.corrcoef(model.predict(context(), test), [truth(c) for c in test])[0, 1]
    model.update(context(), train, [result(1 / truth(c)) for c in train])
    together = np.corrcoef(model.predict(context(), test), [truth(c) for c in test])[0, 1]
    trees = cm.XGBModel(extractor=Flag(), num_warmup_samples=16)
    trees.update(context(), train, [result(1 / truth(c)) for c in train])
    without = np.corrcoef(trees.predict(context(), test), [truth(c) for c in test])[0, 1]
    assert together > alone and together > without and together > 0.95


def test_warm_start_learns_from_records():
    def record(seconds, tile):
        return SimpleNamespace(run_secs=seconds, as_measure_candidate=lambda: candidate(tile))

    model = cm.XGBModel(num_warmup_samples=2)
    known = [record([1.0], 2), record(None, 4), record([0.5, 0.7], 8)]
    assert cm.warm_start(model, context(), known) == 2
    assert sorted(model.data[""].costs.tolist()) == pytest.approx([0.6, 1.0])


# ---- kinds, subclasses, errors -------------------------------------------------------------------------------------


def test_models_by_name(monkeypatch):
    assert isinstance(cm.CostModel.create("xgb"), cm.XGBModel)
    assert isinstance(cm.CostModel.create("random", seed=1), cm.RandomModel)
    assert isinstance(cm.CostModel.create("analytical"), cm.AnalyticalModel)
    assert cm.CostModel.create("none") is None
    with pytest.raises(tw.ArgumentError, match="no cost model of the kind 'tree'") as caught:
        cm.CostModel.create("tree")
    assert caught.value.code == "cost_model/kind"
    monkeypatch.setattr(cm.kinds.importlib.util, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="xgboost is missing"):
        assert isinstance(cm.CostModel.create("xgb"), cm.AnalyticalModel)


def test_the_model_of_pytorch_without_pytorch_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for make in (ms.MLPModel, lambda: ms.CostModel.create("mlp")):
        with pytest.raises(tw.ResourceError, match="learns with PyTorch, which cannot be imported") as error:
            make()
        assert error.value.code == "cost_model/torch" and "pip install torch" in str(error.value)


def test_what_a_subclass_leaves_out_is_named():
    class Silent(cm.CostModel):
        pass

    for call in (
        lambda m: m.predict(context(), []),
        lambda m: m.save("x"),
        lambda m: m.load("x"),
        lambda m: m.update(context(), [], []),
    ):
        with pytest.raises(NotImplementedError, match="Silent does not define"):
            call(Silent())


def test_candidates_have_schedules():
    with pytest.raises(tw.ArgumentError, match="attribute 'sch'") as caught:
        cm.AnalyticalModel().predict(context(), [3])
    assert caught.value.code == "search/candidate"


class Giving(cm.xgb_model.FeatureExtractor):
    """Its features are always the same."""

    def __init__(self, features):
        super().__init__()
        self.features = features

    def extract_from(self, context, candidates):
        return self.features


ONE = np.ones((2, 3))


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (None, "features/count", "gave None"),
        (7, "features/count", "gave 7"),
        ("ab", "features/count", "gave 'ab'"),
        ([], "features/count", "of 0 candidates, not of 2"),
        ([ONE], "features/count", "of 1 candidates, not of 2"),
        ([ONE] * 3, "features/count", "of more than 2 candidates, not of 2"),
        (itertools.repeat(ONE), "features/count", "of more than 2 candidates, not of 2"),
        ([ONE, None], "features/shape", "the shape ()"),
        ([ONE, np.ones(3)], "features/shape", "the shape (3,)"),
        ([ONE, np.ones((2, 3, 1))], "features/shape", "the shape (2, 3, 1)"),
        ([ONE, np.ones((2, 0))], "features/shape", "the shape (2, 0)"),
        ([ONE, np.ones((2, 4))], "features/shape", "4 features where others have 3"),
        ([ONE, [[1, 2, 3], [4]]], "features/shape", "[[1, 2, 3], [4]] for a candidate: setting an array"),
        ([ONE, [["a", "b", "c"]]], "features/shape", "values of the type <U1"),
        ([ONE, ONE.astype("complex64")], "features/shape", "values of the type complex64"),
        ([ONE, np.array([[None, object(), 1]])], "features/shape", "for a candidate: "),
        ([ONE, ONE * 1e300], "features/shape", "a number that float32 does not hold"),
        ([ONE, SimpleNamespace(numpy=lambda: ONE[0])], "features/shape", "the shape (3,)"),
    ],
)
@pytest.mark.parametrize("kind", [cm.XGBModel, cm.ResidualModel])
def test_features_that_make_no_sense_are_refused_in_words(kind, given, code, said):
    prior = {"prior": Flat()} if kind is cm.ResidualModel else {}
    two, seconds = speeds([1, 2]), [result(1.0), result(2.0)]
    model = kind(extractor=Giving(given), num_warmup_samples=1, **prior)
    with pytest.raises(tw.ArgumentError) as caught:
        model.update(context(), two, seconds)
    assert caught.value.code == code and model.data == {}
    assert str(caught.value).startswith("extract_from() of a 'Giving' gave ") and said in str(caught.value)
    assert "a matrix of numbers for each candidate" in caught.value.hint
    model.extractor = Giving([ONE, ONE])
    model.update(context(), two, seconds)
    model.extractor = Giving(given)
    with pytest.raises(tw.ArgumentError) as caught:
        model.predict(context(), two)
    assert caught.value.code == code


def test_features_are_as_many_as_before():
    model = cm.XGBModel(extractor=Giving([ONE]), num_warmup_samples=1)
    model.update(context(), speeds([1]), [result(1.0)])
    model.extractor = Giving([ONE[:, :2]])
    for use in (
        lambda: model.update(context(), speeds([1]), [result(1.0)]),
        lambda: model.predict(context(), speeds([1])),
    ):
        with pytest.raises(tw.ArgumentError, match="2 features where others have 3"):
            use()
    for features in ([[]], [np.zeros((0, 5))], [ONE.astype(object)], [np.full((1, 3), np.nan)]):  # nothing wrong
        model.extractor = Giving(features)
        assert model.predict(context(), speeds([1])).shape == (1,)
        model.update(context(), speeds([1]), [result(1.0)])


class Lying:
    """Longer than it is, or shorter."""

    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("kind", [cm.XGBModel, cm.ResidualModel])
def test_models_are_called_with_candidates_and_results(kind, monkeypatch):
    monkeypatch.setattr(limits, "MOST_ITEMS", 1000)
    monkeypatch.setattr(kind, "_train", lambda self: None)
    prior = {"prior": Flat()} if kind is cm.ResidualModel else {}
    model = kind(extractor=Known(), **prior)
    one, good = speeds([1]), [result(1.0)]
    for given in (7, None, "x", itertools.repeat(one[0]), Lying(1, itertools.count())):
        for use in (
            lambda given=given: model.predict(context(), given),
            lambda given=given: model.update(context(), given, good),
            lambda given=given: model.update(context(), one, given),
            lambda given=given: cm.RandomModel().predict(context(), given),
        ):
            with pytest.raises(tw.ArgumentError, match=r"(candidates|results) is .*; it is a list of") as caught:
                use()
            assert caught.value.code == "arguments/kind"
    wrong = [7], [None], [], good * 2, [result("x")], [result(-1.0)], [result(float("nan"))]
    for results in (*wrong, [SimpleNamespace(run_secs=7)], Lying(1, good * 2)):
        with pytest.raises(tw.ArgumentError) as caught:
            model.update(context(), one, results)
        assert caught.value.code == "search/results"
    assert model.data == {}
    model.update(context(), Lying(2**62, one), Lying(-1, good))
    assert model.data_size == 1 and model.predict(context(), Lying(2**40, one * 3)).shape == (3,)
    with pytest.raises(tw.ArgumentError, match="extractor is 7; it is a FeatureExtractor"):
        kind(extractor=7)


def test_the_analytical_model_is_called_with_candidates_and_results(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ITEMS", 1000)
    model, one, good = cm.AnalyticalModel(), [candidate()], [result(1.0)]
    for use, code in (
        (lambda: model.predict(context(), 7), "arguments/kind"),
        (lambda: model.predict(context(), itertools.repeat(one[0])), "arguments/kind"),
        (lambda: model.predict(context(), [7]), "search/candidate"),
        (lambda: model.update(context(), 7, 7), "arguments/kind"),
        (lambda: model.update(context(), one, 7), "arguments/kind"),
        (lambda: model.update(context(), [7], good), "search/candidate"),
        (lambda: model.update(context(), one, [7]), "search/results"),
        (lambda: model.update(context(), one, good * 2), "search/results"),
        (lambda: model.update(context(), one * 2, good), "search/results"),
        (lambda: RandomFeatureExtractor().extract_from(context(), 7), "arguments/kind"),
        (lambda: _core.PerStoreFeature().extract_from(context(), 7), "arguments/kind"),
    ):
        with pytest.raises(tw.ArgumentError) as caught:
            use()
        assert caught.value.code == code
    model.update(context(), iter(one), iter(good))
    assert model.predict(context(), Lying(2**40, one * 2)).shape == (2,)


def test_a_model_that_is_forgiven_learns_from_the_results():
    told = []

    class Learns(cm.CostModel):
        def update(self, context, candidates, results):
            told.extend((r.run_secs, r.error_msg) for r in results)

    failed = SimpleNamespace(run_secs=None, error_msg="it crashed")
    _core.ForgivingModel(Learns(), print).update(context(), [candidate()] * 2, [result(0.5), failed])
    assert told == [([0.5], None), (None, "it crashed")]


@pytest.mark.parametrize("scores", [None, 1.0, "x", [1.0], np.ones((2, 1)), ["a", "b"], [[1.0], [1.0, 2.0]]])
def test_priors_give_a_score_for_each_candidate(scores):
    class Prior(cm.CostModel):
        def predict(self, context, candidates):
            return scores

    with pytest.raises(tw.ArgumentError, match=r"predict\(\) of a 'Prior' gave .* for 2 candidates") as caught:
        cm.ResidualModel(prior=Prior(), extractor=Known()).predict(context(), speeds([1, 2]))
    assert caught.value.code == "search/scores"


# ---- as strategies use them ----------------------------------------------------------------------------------------


def split_rows(sch):
    (loop, *_) = sch.get_loops(sch.get_block("C"))
    sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=64))


def rows_of(candidate):
    sch = candidate.sch
    return int(sch.get(sch.get_loops(sch.get_block("C"))[1]).extent)


def evolve(model):
    """The rows of a tile in each candidate of a batch that the model chooses."""
    space = ms.ScheduleFn(split_rows)
    space.schedule_rules, space.postprocs, space.mutators = [], [], [(ms.MutateTileSize(), 1.0)]
    strategy = ms.EvolutionarySearch(population_size=24, init_min_unmeasured=4, eps_greedy=0.0)
    task = ms.TuneContext(
        matmul(96, 16, 16), target="llvm", space_generator=space, search_strategy=strategy, rand_state=3, num_threads=2
    )
    task.pre_tuning(4, 4, cost_model=model)
    candidates = task.generate_measure_candidates()
    return [rows_of(candidate) for candidate in candidates]


class LargeTiles(cm.CostModel):
    """Likes many rows."""

    def predict(self, context, candidates):
        return np.array([float(rows_of(c)) for c in candidates])


def test_models_in_python_choose_in_strategies():
    assert max(evolve(LargeTiles())) >= 32
    assert sum(evolve(LargeTiles())) > sum(evolve(cm.AnalyticalModel()))


def test_what_models_in_python_do_wrong_ends_the_search_as_an_error():
    class Broken(cm.CostModel):
        def predict(self, context, candidates):
            raise ValueError("no idea")

    with pytest.raises(ValueError, match="no idea"):  # "cost_model/exception" on its way through C++
        evolve(Broken())

    class Short(cm.CostModel):
        def predict(self, context, candidates):
            return np.zeros(1)

    with pytest.raises(
        tw.ArgumentError, match=r"predict\(\) of a 'Short' gave an array of the shape \(1,\) for \d+ candidates"
    ) as caught:
        evolve(Short())
    assert caught.value.code == "search/scores"
