"""The cost model that learns with PyTorch."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.cost_model import mlp_model
from tilewright.meta_schedule import cost_model as cm
from tilewright.testing.workloads import matmul

pytestmark = pytest.mark.usefixtures("with_torch")


def candidates(count: int, seed: int) -> list[SimpleNamespace]:
    """Tilings of a product."""
    found = []
    for i in range(count):
        sch = tw.Schedule(matmul(64, 64, 64), seed=seed + i)
        loops = sch.get_loops(sch.get_block("C"))
        i, j = (sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=64)) for loop in loops[:2])
        sch.reorder(i[0], j[0], loops[2], i[1], j[1])
        sch.vectorize(j[1])
        found.append(SimpleNamespace(sch=sch, args_info=[]))
    return found


def seconds(candidate: SimpleNamespace) -> float:
    """What an estimate says, which is to be learned."""
    return 1.0 / float(ms.AnalyticalModel().predict(CONTEXT, [candidate])[0])


def results(of: list[SimpleNamespace]) -> list[SimpleNamespace]:
    return [SimpleNamespace(run_secs=[seconds(c)], error_msg=None) for c in of]


CONTEXT = ms.TuneContext(matmul(64, 64, 64), target="llvm -mcpu=znver4 -num-cores=2")


def right_pairs(model: ms.CostModel, of: list[SimpleNamespace]) -> float:
    scores, times = model.predict(CONTEXT, of), np.array([seconds(c) for c in of])
    pairs = times[:, None] < times[None, :]
    return float((scores[:, None] > scores[None, :])[pairs].mean())


def test_it_learns_to_rank_and_is_kept_in_a_file(tmp_path: Path) -> None:
    model = ms.MLPModel()
    known, new = candidates(48, 1), candidates(32, 1000)
    model.update(CONTEXT, known, results(known))
    assert right_pairs(model, new) > 0.85
    more = candidates(4, 2000)
    model.update(CONTEXT, more, results(more))  # few: learned beside
    assert model.trainer.data_size == 52 and right_pairs(model, new) > 0.85
    model.save(str(tmp_path / "model"))
    again = ms.MLPModel()
    again.load(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(CONTEXT, new), model.predict(CONTEXT, new))
    assert again.trainer.data_size == 52
    (tmp_path / "other").write_text("no model")
    with pytest.raises(tw.ResourceError, match="is not a saved cost model"):
        again.load(str(tmp_path / "other"))


def test_frozen_and_the_same_twice() -> None:
    known = candidates(24, 1)
    frozen = cm.MLPModel(trainer=cm.SegmentSumMLPTrainer(cm.TrainerConfig(frozen=True)))
    before = frozen.predict(CONTEXT, known)
    frozen.update(CONTEXT, known, results(known))
    np.testing.assert_array_equal(frozen.predict(CONTEXT, known), before)
    one, other = ms.MLPModel(), ms.MLPModel()
    for model in (one, other):
        model.update(CONTEXT, known, results(known))
    np.testing.assert_array_equal(one.predict(CONTEXT, known), other.predict(CONTEXT, known))
    assert one.predict(CONTEXT, []).shape == (0,)


def test_the_loss_is_least_for_the_right_order() -> None:
    labels = torch.tensor([1.0, 0.5, 0.2, 0.0])
    right, wrong = (
        mlp_model.lambda_rank_loss(torch, scores, labels)
        for scores in (torch.tensor([3.0, 2, 1, 0]), torch.arange(4.0))
    )
    assert 0 < right < wrong
    scores = torch.zeros(4, requires_grad=True)
    mlp_model.lambda_rank_loss(torch, scores, labels).backward()
    assert scores.grad[0] < 0 < scores.grad[3]  # the best is to rise, the worst to fall


def test_a_session_with_it(tmp_path: Path) -> None:
    database = ms.tune_tir(
        matmul(32, 32, 32),
        "llvm -num-cores=1",
        tmp_path,
        12,
        num_trials_per_iter=6,
        cost_model="mlp",
        strategy=ms.EvolutionarySearch(population_size=32, init_min_unmeasured=16, genetic_num_iters=2),
        database="memory",
        seed=1,
    )
    assert len(database) == 12 and ms.compile_tir(database, matmul(32, 32, 32), "llvm -num-cores=1") is not None


def test_what_is_held_out_is_judged_and_not_learned(caplog: pytest.LogCaptureFixture) -> None:
    published = cm.TrainerConfig()
    assert (published.train_verbose, published.test_interval, published.test_split) == (1000, 1, 0.2)
    given = candidates(20, seed=5)
    learned: list[int] = []

    class Counting(cm.SegmentSumMLPTrainer):
        def _pass_over(self, groups: Any) -> None:
            learned.append(sum(len(labels) for _, labels in groups))
            super()._pass_over(groups)

    with caplog.at_level(logging.DEBUG, "tilewright.meta_schedule"):
        config = cm.TrainerConfig(num_epoch_full=6, test_interval=3, test_split=0.25, train_verbose=4)
        ms.MLPModel(trainer=Counting(config)).update(CONTEXT, given, results(given))
    assert learned == [15] * 6
    assert caplog.text.count("loss of what is held out") == 2 and "pass 6: " in caplog.text
    assert caplog.text.count("step 4: loss: ") == 1 and "step 8" not in caplog.text
    caplog.clear()
    learned.clear()
    with caplog.at_level(logging.DEBUG, "tilewright.meta_schedule"):
        ms.MLPModel(trainer=Counting(cm.TrainerConfig(num_epoch_full=2, test_split=0))).update(
            CONTEXT, given, results(given)
        )
    assert learned == [20, 20] and "held out" not in caplog.text


def test_what_makes_no_sense_is_refused_in_words() -> None:
    model, (one,) = ms.MLPModel(), candidates(1, 0)
    for use in (lambda: model.predict(CONTEXT, 7), lambda: model.update(CONTEXT, [one], 7)):
        with pytest.raises(tw.ArgumentError, match="is 7; it is a list of"):
            use()
    with pytest.raises(tw.ArgumentError, match="1 candidates and 0 results"):
        model.update(CONTEXT, [one], [])
    model.extractor = ms.PerStoreFeature()  # without those of the program's arguments
    with pytest.raises(tw.ArgumentError, match="164 features where others have 172") as error:
        model.predict(CONTEXT, [one])
    assert error.value.code == "features/shape"
