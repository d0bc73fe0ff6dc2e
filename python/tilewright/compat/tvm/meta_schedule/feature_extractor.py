"""tvm.meta_schedule.feature_extractor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.meta_schedule.delegation import delegates_to
from tilewright.compat.tvm.runtime.ndarray import NDArray, array
from tilewright.cost_model import feature_extractor as own

__all__ = ["FeatureExtractor", "PerStoreFeature", "PyFeatureExtractor", "RandomFeatureExtractor", "create"]


class PerStoreFeature(_core.FeatureExtractor):
    """164 numbers for each buffer that is stored to."""

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        super().__init__()
        self._own = _core.PerStoreFeature(
            buffers_per_store, arith_intensity_curve_num_samples, cache_line_bytes, extract_workload
        )
        self.feature_vector_length = self._own.feature_vector_length

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray]:
        """Return one matrix for each candidate."""
        return [array(matrix) for matrix in self._own.extract_from(context, candidates)]


class RandomFeatureExtractor(own.RandomFeatureExtractor):
    """Random matrices."""

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray]:  # type: ignore[override]
        """Return one matrix for each candidate."""
        return [array(matrix) for matrix in super().extract_from(context, candidates)]


def create(kind: str, *args: Any, **kwargs: Any) -> _core.FeatureExtractor:
    """Return an extractor by name."""
    own.create(kind)
    return PerStoreFeature(*args, **kwargs)


class FeatureExtractor(metaclass=Renamed):
    """An extractor."""

    node = _core.FeatureExtractor
    make = _core.FeatureExtractor
    create = staticmethod(create)
    FeatureExtractorType = Any


@delegates_to(_core.FeatureExtractor)
class PyFeatureExtractor:
    """The base of extractors in Python, to be decorated with derived_object."""

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray]:
        """Return one matrix for each candidate."""
        raise NotImplementedError
