"""The published objective: the score of a candidate is the sum of what the trees say of its rows.

Features are a row for each buffer that a candidate stores to, measurements are of whole candidates. So a label is
wanted of the sum over the rows: with labels y (the greatest throughput is 1), predictions of rows, and s their sum, the
loss of a candidate is w (s - y)^2 / 2 with w = y. Its gradient by the prediction of a row is w (s - y); as second
derivative w is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PackSum", "early_stop"]

Array = NDArray[Any]


class PackSum:
    """Candidates as one matrix.

    Args:
        xs: the rows of each candidate.
        ys: the label of each candidate, where known.
        weights: weights of the candidates in the loss; the published ones are the labels.
    """

    def __init__(self, xs: Sequence[Array], ys: Array | None, weights: Array | None = None) -> None:
        import xgboost

        rows = np.array([len(x) for x in xs], "int64")
        self.count = len(xs)
        self.ids = np.repeat(np.arange(self.count), rows)
        self.labels = None if ys is None else np.asarray(ys, "float64")
        self.weights = self.labels if weights is None else np.asarray(weights, "float64")
        self.dmatrix = xgboost.DMatrix(data=np.concatenate(xs, axis=0), label=None if ys is None else ys[self.ids])
        if self.weights is not None:
            self.dmatrix.set_weight(self.weights[self.ids])

    def predict_with_score(self, pred: Array) -> Array:
        """Return the scores of the candidates: the sums of their rows' predictions."""
        return np.bincount(self.ids, weights=pred, minlength=self.count)

    def obj_square_error(self, ys_pred: Array) -> tuple[Array, Array]:
        """Return gradient and second derivative of the losses with respect to the rows' predictions."""
        assert self.labels is not None and self.weights is not None
        weights = self.weights[self.ids]
        return (self.predict_with_score(ys_pred)[self.ids] - self.labels[self.ids]) * weights, weights

    def rmse(self, ys_pred: Array) -> tuple[str, float]:
        """Return the root mean square error over the rows."""
        assert self.labels is not None
        error = self.predict_with_score(ys_pred)[self.ids] - self.labels[self.ids]
        return "p-rmse", float(np.sqrt(np.mean(np.square(error))))

    def average_peak_score(self, ys_pred: Array, n: int) -> tuple[str, float]:
        """Return the mean, over k = 1...n, of the best label among the k candidates predicted best, relative to the
        best label of all.

        Labels are compared as shares of the greatest. Of one that is not above 0 there are none: then it counts how
        often it was among the first.
        """
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
        early_stopping_rounds: for how many rounds.
        verbose_eval: how often metrics are reported, in rounds; 0 for never.
        fevals: metrics of predictions and a matrix, each giving its name and a number.
        evals: matrices and their names.
        focused_metric: the one that counts: the name of the matrix, "-", the name of the metric.
        report: takes a line of text.
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
