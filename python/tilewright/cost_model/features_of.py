"""Data for cost models: features of candidates, seconds of results, the name of a program."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright._core import structural_hash
from tilewright.errors import ArgumentError
from tilewright.support import limits

__all__ = [
    "FAILED",
    "candidates_in",
    "costs_in",
    "features_from",
    "key_of",
    "results_for",
    "results_in",
    "scores_from",
    "throughput_of",
]

#: seconds of what could not be measured
FAILED = 1e10
_MATRICES = (
    "it gives a matrix of numbers for each candidate, in their order: a row for each store, as many columns in all"
)


def candidates_in(given: Any) -> list[Any]:
    """Return the checked candidates of a call of a model; the extractor checks what they are.

    Raises:
        tilewright.ArgumentError: the argument is not a list.
    """
    return limits.items("candidates", given, "candidates")


def costs_in(results: Any, count: int) -> NDArray[Any]:
    """Return the seconds of each result; `count` is the required number of results.

    Raises:
        tilewright.ArgumentError: the values are not results, or their number differs.
    """
    costs = [float(np.median(seconds)) if seconds else FAILED for seconds, _ in results_in(results, count)]
    return np.array(costs, "float32")


def results_for(results: Any, count: int) -> list[Any]:
    """Return the results of a list; `count` is the number of candidates.

    Raises:
        tilewright.ArgumentError: the argument is not a list, or has another length.
    """
    found = limits.items("results", results, "results")
    if len(found) != count:
        raise ArgumentError.of(
            "search/results", f"there are {count} candidates and {len(found)} results", "give a result for each"
        )
    return found


def results_in(results: Any, count: int) -> list[tuple[list[float], str | None]]:
    """Return the seconds of each result, none where it failed, and its error message; `count` results are expected.

    Raises:
        tilewright.ArgumentError: the values are not results, or their number differs.
    """
    return [_result_of(result) for result in results_for(results, count)]


def _result_of(result: Any) -> tuple[list[float], str | None]:
    seconds, error = getattr(result, "run_secs", result), getattr(result, "error_msg", None)
    try:
        numbers = [] if seconds is None else [float(s) for s in limits.items("run_secs", seconds, "seconds")]
        if seconds is result or not all(s > 0 for s in numbers):
            raise TypeError
    except (TypeError, ValueError):
        what = f"{seconds!r:.80} as `run_secs`" if seconds is not result else f"no `run_secs`: it is {result!r:.80}"
        hint = "ms.RunnerResult([0.001], None): seconds are numbers above 0; ms.RunnerResult(None, why) where it failed"
        raise ArgumentError.of("search/results", f"a result has {what}", hint) from None
    return numbers, None if error is None else str(error)


def features_from(extractor: Any, context: Any, candidates: Sequence[Any], columns: int = 0) -> list[NDArray[Any]]:
    """Return the extracted features of candidates: a float32 matrix for each, without rows if there are none.

    Args:
        extractor: feature extractor of any kind.
        context: context of the candidates.
        candidates: the candidates.
        columns: required number of columns; 0 for any number.

    Raises:
        tilewright.ArgumentError: the extractor returns something else.
    """
    given = extractor.extract_from(context, candidates)
    who, count = f"extract_from() of a '{type(extractor).__name__}'", len(candidates)
    try:
        # One more than wanted shows that there are too many.
        items = None if isinstance(given, str | bytes) else list(itertools.islice(iter(given), count + 1))
    except TypeError:
        items = None
    if items is None or len(items) != count:
        many = f"more than {count}" if items and len(items) > count else str(len(items or ()))
        problem = f"gave {given!r:.80}" if items is None else f"gave features of {many} candidates, not of {count}"
        raise ArgumentError.of("features/count", f"{who} {problem}", _MATRICES)
    matrices = []
    for item in items:
        matrix, wrong = _matrix_of(item)
        rows, width = matrix.shape
        if rows and not wrong and width != (columns or width):
            wrong = f"{width} features where others have {columns}"
        if wrong:
            raise ArgumentError.of("features/shape", f"{who} gave {wrong}", _MATRICES)
        columns = width if rows else columns
        matrices.append(matrix)
    return matrices


def _matrix_of(item: Any) -> tuple[NDArray[Any], str]:
    """Return the feature rows of a candidate, and what is wrong with them ("" if nothing)."""
    none: NDArray[Any] = np.zeros((0, 0), "float32")
    try:
        given: NDArray[Any] = np.asarray(item.numpy() if hasattr(item, "numpy") else item)
        with np.errstate(over="ignore"):
            array = given.astype("float32") if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError, RuntimeError) as error:  # of ragged lists, of objects, of tensors with gradients
        return none, f"{item!r:.80} for a candidate: {error}"
    if array is None:
        return none, f"values of the type {given.dtype} for a candidate"
    if array.size == 0 and array.ndim in (1, 2) and not len(array):
        return none, ""
    if array.ndim != 2 or array.size == 0:
        return none, f"an array of the shape {array.shape} for a candidate"
    if np.isinf(array).any():
        return none, "a number that float32 does not hold"
    return array, ""


def scores_from(model: Any, context: Any, candidates: Sequence[Any]) -> NDArray[np.float64]:
    """Return the scores of candidates by a model of any kind.

    Raises:
        tilewright.ArgumentError: the model does not return one number for each candidate.
    """
    given = model.predict(context, candidates)
    try:
        scores = np.asarray(given.numpy() if hasattr(given, "numpy") else given, "float64")
    except (TypeError, ValueError):
        scores = np.zeros((0, 0))
    if scores.shape != (len(candidates),):
        result = f"an array of the shape {scores.shape}" if isinstance(given, np.ndarray) else f"{given!r:.80}"
        raise ArgumentError.of(
            "search/scores",
            f"predict() of a '{type(model).__name__}' gave {result} for {len(candidates)} candidates",
            "it gives an array with a number for each candidate",
        )
    if len(candidates) and np.isnan(scores).all():
        raise ArgumentError.of(
            "search/scores",
            f"predict() of a '{type(model).__name__}' gave nan for all of {len(candidates)} candidates",
            "it gives a number for each: the greater, the faster",
        )
    return scores


def throughput_of(costs: NDArray[Any]) -> NDArray[Any]:
    """Return the throughput of measurements of one program relative to the best; 0 for failed ones, also if all
    failed."""
    return np.where(costs < FAILED, np.min(costs) / costs, 0).astype(costs.dtype)


def key_of(context: Any) -> str:
    """Return the key of a task's program."""
    module = getattr(context, "module", None)
    return "" if module is None else str(structural_hash(module))
