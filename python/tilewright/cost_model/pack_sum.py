"""The pack-sum objective (Ansor, Zheng et al., OSDI 2020): a candidate's score is the sum of its rows' predictions.

A candidate has one feature row for each buffer that it stores to, but only one measurement. With label y (relative
throughput, at most 1), sum of row predictions s and weight w (w = y in the paper), the loss of a candidate is
w (s - y)^2 / 2. Its gradient with respect to each row's prediction is w (s - y); w is used as the second derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PackSum", "early_stop"]

Array = NDArray[Any]


class PackSum:
    """Candidates as one matrix of feature rows.

    Args:
        xs: the feature rows of each candidate.
        ys: the label of each candidate; None for predictions.
        weights: weights of the candidates in the loss; by default the labels, as in the paper.
        nthread: threads that copy the matrix. More than one would wait in busy loops afterwards, beside kernels that
            are being measured.
    """

    def __init__(
        self, xs: Sequence[Array], ys: Array | None, weights: Array | None = None, nthread: int | None = 1
    ) -> None:
        import xgboost

        rows = np.array([len(x) for x in xs], "int64")
        self.count = len(xs)
        self.candidate_of_row = np.repeat(np.arange(self.count), rows)
        self.labels = None if ys is None else np.asarray(ys, "float64")
        self.weights = self.labels if weights is None else np.asarray(weights, "float64")
        self.dmatrix = xgboost.DMatrix(
            data=np.concatenate(xs, axis=0),
            label=None if ys is None else ys[self.candidate_of_row],
            nthread=nthread,
        )
        if self.weights is not None:
            self.dmatrix.set_weight(self.weights[self.candidate_of_row])

    def predict_with_score(self, pred: Array) -> Array:
        """Return the scores of the candidates: the sums of their rows' predictions."""
        return np.bincount(self.candidate_of_row, weights=pred, minlength=self.count)

    def obj_square_error(self, ys_pred: Array) -> tuple[Array, Array]:
        """Return gradient and second derivative of the losses with respect to the rows' predictions."""
        assert self.labels is not None and self.weights is not None
        weights = self.weights[self.candidate_of_row]
        return (
            self.predict_with_score(ys_pred)[self.candidate_of_row] - self.labels[self.candidate_of_row]
        ) * weights, weights

    def rmse(self, ys_pred: Array) -> tuple[str, float]:
        """Return the root mean square error over the rows."""
        assert self.labels is not None
        error = self.predict_with_score(ys_pred)[self.candidate_of_row] - self.labels[self.candidate_of_row]
        return "p-rmse", float(np.sqrt(np.mean(np.square(error))))

    def average_peak_score(self, ys_pred: Array, n: int) -> tuple[str, float]:
        """Return the mean, over k = 1...n, of the best label among the k candidates predicted best, relative to the
        best label of all. If no label is positive, return the fraction of k for which the best is among them."""
        assert self.labels is not None
        order = np.argsort(-self.predict_with_score(ys_pred), kind="stable")[:n]
        best_so_far = np.maximum.accumulate(self.labels[order])
        best = np.max(self.labels)
        shares = best_so_far / best if best > 0 else best_so_far == best
        return f"a-peak@{n}", float(np.mean(shares))


def early_stop(
    early_stopping_rounds: int,
    verbose_eval: int,
    fevals: Sequence[Callable[..., tuple[str, float]]],
    evals: Sequence[tuple[Any, str]],
    focused_metric: str = "tr-p-rmse",
    report: Callable[[str], None] | None = None,
) -> Any:
    """Return an XGBoost callback that stops training when a metric has not improved for some rounds.

    Args:
        early_stopping_rounds: number of rounds without improvement after which training stops.
        verbose_eval: report metrics every this many rounds; 0 for never.
        fevals: metrics, functions of predictions and a matrix that return a name and a number.
        evals: matrices and their names.
        focused_metric: the metric that has to improve: name of the matrix, "-", name of the metric.
        report: function of a line of text.
    """
    from xgboost.callback import TrainingCallback

    class EarlyStop(TrainingCallback):
        best_score = float("inf")
        best_iteration = 0

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            scores = {}
            for matrix, name in evals:
                predictions = model.predict(matrix, output_margin=True)
                for metric in fevals:
                    key, value = metric(predictions, matrix)
                    scores[f"{name}-{key}"] = value
            if report is not None and verbose_eval and epoch % verbose_eval == 0:
                report(f"[{epoch:>3}] " + "  ".join(f"{key}: {value:.6f}" for key, value in scores.items()))
            if scores[focused_metric] < self.best_score:
                self.best_score, self.best_iteration = scores[focused_metric], epoch
                model.set_attr(best_score=str(self.best_score), best_iteration=str(epoch))
            return epoch - self.best_iteration >= early_stopping_rounds

    return EarlyStop()
