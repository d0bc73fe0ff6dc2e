"""XGBoost cost models on per-store features, with the pack-sum objective of Ansor (Zheng et al., OSDI 2020)."""

from __future__ import annotations

import io
import logging
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright._core import AnalyticalModel, CostModel, FeatureExtractor
from tilewright.cost_model.feature_extractor import create as create_extractor
from tilewright.cost_model.features_of import (
    FAILED,
    candidates_in,
    costs_in,
    features_from,
    key_of,
    scores_from,
    throughput_of,
)
from tilewright.cost_model.pack_sum import PackSum, early_stop
from tilewright.errors import ResourceError
from tilewright.support import limits
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["FeatureGroup", "ResidualModel", "XGBConfig", "XGBModel"]

Array = NDArray[Any]
_LOG = logging.getLogger("tilewright.meta_schedule")


@dataclass
class XGBConfig:
    """Parameters of XGBoost."""

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: int | None = None
    tree_method: str = "auto"

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as XGBoost takes them."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass
class FeatureGroup:
    """Measurements of one program: features, seconds, and, if a prior is used, its estimates in seconds."""

    group_hash: str
    features: list[Array]
    costs: Array
    estimates: Array

    @property
    def min_cost(self) -> float:
        """Return the lowest cost so far."""
        return float(np.min(self.costs))

    def append(self, features: list[Array], costs: Array, estimates: Array) -> None:
        """Add measurements."""
        self.features = self.features + features
        self.costs = np.concatenate([self.costs, costs])
        self.estimates = np.concatenate([self.estimates, estimates])


class XGBModel(CostModel):
    """Predict throughput, relative to the best of the same program, from features.

    Before ``num_warmup_samples`` measurements, scores are random. Training starts from scratch on all data; with
    ``adaptive_training``, only after the data has grown by 20 % since the last training.

    Args:
        extractor: feature extractor, or its name.
        config: configuration of XGBoost.
        num_warmup_samples: number of measurements below which scores are random.
        early_stopping_rounds: boosting rounds without improvement after which training stops.
        verbose_eval: log metrics every this many rounds; 0 for never.
        average_peak_n: n of the logged average-peak-score metric.
        adaptive_training: whether to skip trainings.
        num_tuning_cores: accepted for compatibility with TVM and ignored. Training uses ``config.nthread`` threads, by
            default 1: on the data of one session, more threads are slower.
        tree_method: tree method of XGBoost, instead of that of the configuration.
    """

    @suggests_keywords
    def __init__(
        self,
        *,
        extractor: FeatureExtractor | str = "per-store-feature",
        config: XGBConfig | None = None,
        num_warmup_samples: int = 100,
        early_stopping_rounds: int = 50,
        verbose_eval: int = 25,
        average_peak_n: int = 32,
        adaptive_training: bool = True,
        num_tuning_cores: int | None = None,
        tree_method: str | None = None,
    ) -> None:
        super().__init__()
        self.extractor = create_extractor(extractor) if isinstance(extractor, str) else extractor
        if not hasattr(self.extractor, "extract_from"):
            raise limits.wrong_kind("extractor", extractor, "a FeatureExtractor, or the name of one")
        self.config = XGBConfig(**asdict(config)) if config is not None else XGBConfig()
        if self.config.nthread is None:
            self.config.nthread = 1
        if tree_method is not None:
            self.config.tree_method = tree_method
        self.num_warmup_samples = num_warmup_samples
        self.early_stopping_rounds = early_stopping_rounds
        self.verbose_eval = verbose_eval
        self.average_peak_n = average_peak_n
        self.adaptive_training = adaptive_training
        self.data: dict[str, FeatureGroup] = {}
        self.data_size = 0
        self.last_train_size = 0
        self.booster: Any = None
        self._random = np.random.RandomState(self.config.seed)

    # ---- hooks for subclasses: prior estimates, labels and scores ---------------------------------------------------

    def _estimates(self, context: Any, candidates: Sequence[Any]) -> Array:
        """Return the seconds that each candidate is expected to take; NaN if unknown."""
        return np.full(len(candidates), np.nan)

    def _labels(self, group: FeatureGroup) -> tuple[Array, Array]:
        """Return the training labels and weights of a program's measurements."""
        throughput = throughput_of(group.costs)
        return throughput, throughput

    def _scores(self, predictions: Array, group: FeatureGroup | None, estimates: Array) -> Array:
        """Return scores from the trees' predictions."""
        return predictions

    def _scores_before_training(self, estimates: Array) -> Array:
        """Return scores before there is a trained model."""
        return self._random.uniform(low=0, high=1, size=len(estimates))

    # ---- training ---------------------------------------------------------------------------------------------------

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Add measurements and retrain. A failed measurement counts as a very slow one."""
        candidates = candidates_in(candidates)
        costs = costs_in(results, len(candidates))
        if not candidates:
            return
        features = features_from(self.extractor, context, candidates, self._columns())
        kept = [i for i, x in enumerate(features) if len(x)]
        if not kept:
            return
        costs = costs[kept]
        estimates = self._estimates(context, [candidates[i] for i in kept])
        key = key_of(context)
        group = self.data.get(key)
        new = [features[i] for i in kept]
        if group is None:
            self.data[key] = FeatureGroup(key, new, costs, estimates)
        else:
            group.append(new, costs, estimates)
        self.data_size += len(kept)
        if self.adaptive_training and self.data_size - self.last_train_size < self.last_train_size / 5:
            return
        self.last_train_size = self.data_size
        self._train()

    def _columns(self) -> int:
        """Return the number of features of a row; 0 before the first measurement."""
        return next((rows.shape[1] for group in self.data.values() for rows in group.features), 0)

    def _train(self) -> None:
        import xgboost

        groups = list(self.data.values())
        labels = [self._labels(group) for group in groups]
        if not any(np.any(weights > 0) for _, weights in labels):
            return  # all measurements have failed
        packed = PackSum(
            xs=[x for group in groups for x in group.features],
            ys=np.concatenate([ys for ys, _ in labels]),
            weights=np.concatenate([weights for _, weights in labels]),
            nthread=self.config.nthread,
        )
        self.booster = xgboost.train(
            self.config.to_dict(),
            packed.dmatrix,
            num_boost_round=10000,
            obj=lambda predictions, _: packed.obj_square_error(predictions),
            callbacks=[
                early_stop(
                    early_stopping_rounds=self.early_stopping_rounds,
                    verbose_eval=self.verbose_eval,
                    fevals=[
                        lambda predictions, _: packed.rmse(predictions),
                        lambda predictions, _: packed.average_peak_score(predictions, self.average_peak_n),
                    ],
                    evals=[(packed.dmatrix, "tr")],
                    report=_LOG.debug,
                )
            ],
        )

    def predict(self, context: Any, candidates: Sequence[Any]) -> NDArray[np.float64]:
        """Return the predicted relative throughput of each candidate; 0 for candidates without features."""
        candidates = candidates_in(candidates)
        if not candidates:
            return np.zeros(0)
        estimates = self._estimates(context, candidates)
        if self.data_size < self.num_warmup_samples or self.booster is None:
            return np.asarray(self._scores_before_training(estimates), "float64")
        columns = self._columns()
        features = features_from(self.extractor, context, candidates, columns)
        if not any(len(x) for x in features):
            return np.zeros(len(candidates))
        packed = PackSum(xs=[x.reshape(-1, columns) for x in features], ys=None, nthread=self.config.nthread)
        predictions = packed.predict_with_score(self.booster.predict(packed.dmatrix, output_margin=True))
        return np.asarray(self._scores(predictions, self.data.get(key_of(context)), estimates), "float64")

    # ---- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str) -> None:
        """Write the trees and all data: a tar file of model.ubj and data.npz."""
        groups = list(self.data.values())
        features = [x for group in groups for x in group.features]
        data = io.BytesIO()
        np.savez(
            data,
            hashes=np.array([group.group_hash for group in groups], "U32"),
            sizes=np.array([len(group.costs) for group in groups], "int64"),
            costs=np.concatenate([np.zeros(0, "float32"), *(group.costs for group in groups)]),
            estimates=np.concatenate([np.zeros(0), *(group.estimates for group in groups)]),
            rows=np.array([len(x) for x in features], "int64"),
            values=np.concatenate(features) if features else np.zeros((0, 0), "float32"),
        )
        files = {"data.npz": data.getvalue()}
        if self.booster is not None:
            files["model.ubj"] = bytes(self.booster.save_raw("ubj"))
        with tarfile.open(path, "w") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))

    def load(self, path: str) -> None:
        """Read a file of :meth:`save`, and replace the present state."""
        try:
            with tarfile.open(path) as archive:
                files = {entry.name: _content(archive, entry) for entry in archive.getmembers()}
            groups = _groups_in(files["data.npz"])
            booster = _booster_in(files.get("model.ubj"), self.config.nthread)
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, KeyError, ValueError) as error:
            raise ResourceError.of(
                "cost_model/file", f"'{path}' is not a saved cost model: {error}", "give a file of save()"
            ) from error
        self.data, self.booster = groups, booster
        self.data_size = self.last_train_size = sum(len(group.costs) for group in groups.values())


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(entry)
    return b"" if file is None else file.read()


def _groups_in(file: bytes) -> dict[str, FeatureGroup]:
    data = np.load(io.BytesIO(file), allow_pickle=False)
    features = np.split(data["values"], np.cumsum(data["rows"])[:-1]) if len(data["rows"]) else []
    groups: dict[str, FeatureGroup] = {}
    start = 0
    for key, size in zip(data["hashes"].tolist(), data["sizes"].tolist(), strict=True):
        part = slice(start, start + size)
        groups[key] = FeatureGroup(key, features[part], data["costs"][part], data["estimates"][part])
        start += size
    if not len(features) == len(data["costs"]) == len(data["estimates"]) == start:
        raise ValueError("the number of measurements differs from the stored one")
    return groups


def _booster_in(file: bytes | None, nthread: int | None) -> Any:
    if file is None:
        return None
    import xgboost

    booster = xgboost.Booster({"nthread": nthread})
    try:
        booster.load_model(bytearray(file))
    except xgboost.core.XGBoostError as error:
        raise ValueError(f"its trees cannot be read: {str(error).partition(chr(10))[0]}") from None
    return booster


class ResidualModel(XGBModel):
    """Learn the residual of a prior: boosted trees predict the log ratio of measured to estimated throughput.

    Before ``num_warmup_samples`` measurements, scores are those of the prior. Few measurements are enough, as the trees
    start from it. The estimates of a program are rescaled by the median ratio of measured to estimated time.

    Args:
        prior: a cost model whose scores are calls per second; by default the analytical model.
        num_warmup_samples: number of measurements below which scores are those of the prior.
        options: options of :class:`XGBModel`.
    """

    def __init__(self, *, prior: CostModel | None = None, num_warmup_samples: int = 16, **options: Any) -> None:
        super().__init__(num_warmup_samples=num_warmup_samples, **options)
        self.prior = prior if prior is not None else AnalyticalModel()

    def _estimates(self, context: Any, candidates: Sequence[Any]) -> Array:
        # A NaN score means that the prior knows nothing: treat the candidate as slow, as the search does.
        scores = np.nan_to_num(scores_from(self.prior, context, candidates), nan=0.0)
        return np.asarray(1 / np.clip(scores, 1e-12, 1e12))

    def _labels(self, group: FeatureGroup) -> tuple[Array, Array]:
        throughput = np.maximum(throughput_of(group.costs), 1e-2)
        return np.log(throughput / _expected(group, group.estimates)), throughput

    def _scores(self, predictions: Array, group: FeatureGroup | None, estimates: Array) -> Array:
        return np.asarray(_expected(group, estimates) * np.exp(np.clip(predictions, -5, 5)))

    def _scores_before_training(self, estimates: Array) -> Array:
        return np.asarray(1 / estimates)


def _expected(group: FeatureGroup | None, estimates: Array) -> Array:
    """Return relative throughput from estimates, rescaled by the median ratio of measured to estimated time of the
    program."""
    measured = np.zeros(0, bool) if group is None else group.costs < FAILED
    if group is None or not measured.any():  # relative to the best estimate
        return np.asarray(np.min(estimates) / estimates)
    scale = np.exp(np.median(np.log(group.costs[measured] / group.estimates[measured])))
    return np.asarray(np.maximum(group.min_cost / (scale * estimates), 1e-2))
