"""A cost model that learns with PyTorch: a network over the stores of a program, whose sum is ranked."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright._core import CostModel, PerStoreFeature
from tilewright.cost_model.features_of import (
    candidates_in,
    costs_in,
    features_from,
    key_of,
    throughput_of,
)
from tilewright.errors import ResourceError

__all__ = ["MLPModel", "SegmentSumMLPConfig", "SegmentSumMLPTrainer", "TrainerConfig"]

Array = NDArray[Any]
#: features and labels of candidates of one program
Group = tuple[list[Array], Array]
_LOG = logging.getLogger("tilewright.meta_schedule")
#: measurements more than at the last full training, as a share, after which all is learned anew
_GROWN = 1.2


@dataclass(frozen=True)
class SegmentSumMLPConfig:
    """The network.

    Attributes:
        input_dim: features of a store; 172 are those of a store and of the program's arguments.
        hidden_dim: width of the layers between.
        output_dim: numbers that it gives; a score is one.
        use_norm: normalize the sums over the stores.
        use_sigmoid: scores between 0 and 1.
    """

    input_dim: int = 172
    hidden_dim: int = 256
    output_dim: int = 1
    use_norm: bool = False
    use_sigmoid: bool = False


@dataclass(frozen=True)
class TrainerConfig:
    """How it learns.

    Attributes:
        batch_size: candidates that are ranked among one another in one step.
        learning_rate: learning rate of Adam.
        weight_decay: weight decay of Adam.
        num_epoch_full: passes over all data, where all is learned anew.
        num_epoch_incremental: passes over what is new.
        grad_clip_norm: longer gradients are shortened to this length.
        train_verbose: the loss is logged once in so many steps.
        test_interval: where all is learned anew, the loss of what is held out is logged once in so many passes.
        test_split: share of the candidates of each program that is held out there, until the next time.
        frozen: learn nothing.
    """

    batch_size: int = 128
    learning_rate: float = 7e-4
    weight_decay: float = 1e-6
    num_epoch_full: int = 50
    num_epoch_incremental: int = 5
    grad_clip_norm: float = 0.5
    train_verbose: int = 1000
    test_interval: int = 1
    test_split: float = 0.2
    frozen: bool = False


def _import_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ResourceError.of(
            "cost_model/torch",
            f"MLPModel learns with PyTorch, which cannot be imported: {error}",
            'pip install torch, or take another cost model, such as "xgb"',
        ) from None


def _network(torch: Any, config: SegmentSumMLPConfig) -> Any:
    nn, width = torch.nn, config.hidden_dim

    class SegmentSumMLP(nn.Module):  # type: ignore[misc, name-defined]
        """Network over the stores of a candidate: each store is encoded, and their sum is decoded."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("largest", torch.ones(config.input_dim))  # of each feature, over what was learned
            relu = nn.ReLU
            self.encoder = nn.Sequential(nn.Linear(config.input_dim, width), relu(), nn.Linear(width, width), relu())
            self.norm = nn.BatchNorm1d(width) if config.use_norm else nn.Identity()
            self.first = nn.Sequential(nn.Linear(width, width), relu())
            self.second = nn.Sequential(nn.Linear(width, width), relu())
            self.decoder = nn.Linear(width, config.output_dim)

        def forward(self, rows: Any, owners: Any, count: int) -> Any:
            encoded = self.encoder(rows / self.largest)
            sums = torch.zeros(count, encoded.shape[1], dtype=encoded.dtype).index_add(0, owners, encoded)
            hidden = self.norm(sums)
            hidden = self.first(hidden) + hidden
            hidden = self.second(hidden) + hidden
            scores = self.decoder(hidden).squeeze(-1)
            return torch.sigmoid(scores) if config.use_sigmoid else scores

    return SegmentSumMLP()


def lambda_rank_loss(torch: Any, scores: Any, labels: Any) -> Any:
    """Return LambdaRank's loss: by how much pairs in the wrong order lower the discounted gain of the ranking.

    Args:
        torch: the package.
        scores: scores of the candidates.
        labels: what they should be ranked by, between 0 and 1.
    """
    order = torch.argsort(scores.detach(), descending=True)
    ranked, truth = scores[order], labels[order]
    gains = 2.0**truth - 1
    discounts = torch.log2(torch.arange(len(truth), dtype=truth.dtype) + 2)
    best = (torch.sort(gains, descending=True).values / discounts).sum().clamp(min=1e-9)
    worth = (gains[:, None] - gains[None, :]).abs() * (1 / discounts[:, None] - 1 / discounts[None, :]).abs() / best
    margins = ranked[:, None] - ranked[None, :]
    wrong = truth[:, None] > truth[None, :]
    return (worth * torch.nn.functional.softplus(-margins))[wrong].sum() / max(1, len(truth))


class SegmentSumMLPTrainer:
    """The network, and what it has seen.

    Args:
        config: how it learns.
        network: what it is.
        seed: seed of the initial weights and of the order of the data.

    Raises:
        tilewright.ResourceError: PyTorch is not installed.
    """

    def __init__(
        self, config: TrainerConfig | None = None, *, network: SegmentSumMLPConfig | None = None, seed: int = 43
    ) -> None:
        self.config, self.network = config or TrainerConfig(), network or SegmentSumMLPConfig()
        self._torch = _import_torch()
        self._random = np.random.RandomState(seed)
        self.seed = seed
        #: by program, features and seconds of its candidates
        self.data: dict[str, tuple[list[Array], Array]] = {}
        self._size_at_full = 0
        self._steps = 0
        self._begin()

    def _begin(self) -> None:
        with self._torch.random.fork_rng(devices=[]):
            self._torch.manual_seed(self.seed)
            self.model = _network(self._torch, self.network)
        self._optimizer = self._torch.optim.Adam(
            self.model.parameters(), lr=self.config.learning_rate, weight_decay=self.config.weight_decay
        )

    @property
    def data_size(self) -> int:
        """Return the number of measurements."""
        return sum(len(costs) for _, costs in self.data.values())

    def learn(self, program: str, features: list[Array], costs: Array) -> None:
        """Add measurements of a program and train: on them, or on all data after it has grown enough.

        Args:
            program: its name.
            features: a matrix for each candidate, a row for each store.
            costs: seconds.
        """
        before = self.data.get(program, ([], np.zeros(0, "float32")))
        self.data[program] = (before[0] + features, np.concatenate([before[1], costs]))
        if self.config.frozen:
            return
        if self.data_size >= _GROWN * self._size_at_full:
            self._size_at_full = self.data_size
            self._begin()
            every = np.concatenate([rows for features, _ in self.data.values() for rows in features])
            self.model.largest.copy_(self._torch.as_tensor(np.maximum(np.abs(every).max(axis=0), 1e-3)))
            groups = [(features, throughput_of(costs)) for features, costs in self.data.values()]
            self._train(*self._held_out(groups), self.config.num_epoch_full)
        else:
            labels = throughput_of(self.data[program][1])[-len(costs) :]
            self._train([(features, labels)], [], self.config.num_epoch_incremental)

    def _held_out(self, groups: list[Group]) -> tuple[list[Group], list[Group]]:
        """Return training and validation data: a random share of each program."""
        learned: list[Group] = []
        held_out: list[Group] = []
        for features, labels in groups:
            order = self._random.permutation(len(features))
            count = int(len(order) * self.config.test_split)
            for part, chosen in ((held_out, order[:count]), (learned, np.sort(order[count:]))):
                part.append(([features[i] for i in chosen], labels[chosen]))
        return learned, held_out

    def _train(self, groups: list[Group], held_out: list[Group], epochs: int) -> None:
        with self._one_thread():
            for epoch in range(epochs):
                self._pass_over(groups)
                if (epoch + 1) % self.config.test_interval == 0 and any(len(labels) > 1 for _, labels in held_out):
                    _LOG.debug("pass %d: loss of what is held out: %.6f", epoch + 1, self._loss_of(held_out))

    def _loss_of(self, groups: list[Group]) -> float:
        with self._torch.no_grad():
            losses = [
                float(lambda_rank_loss(self._torch, self._scores(features), self._torch.as_tensor(labels)))
                for features, labels in groups
                if len(labels) > 1
            ]
        return float(np.mean(losses))

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Run PyTorch on one thread: for matrices this small, more threads are slower, and kernels need them
        meanwhile."""
        threads = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            yield
        finally:
            self._torch.set_num_threads(threads)

    def _pass_over(self, groups: list[Group]) -> None:
        torch = self._torch
        self.model.train()
        for features, labels in groups:
            order = self._random.permutation(len(features))
            for start in range(0, len(order), self.config.batch_size):
                batch = order[start : start + self.config.batch_size]
                if len(batch) < 2:  # nothing to rank
                    continue
                scores = self._scores([features[i] for i in batch])
                loss = lambda_rank_loss(torch, scores, torch.as_tensor(labels[batch], dtype=torch.float32))
                self._optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip_norm)
                self._optimizer.step()
                self._steps += 1
                if self._steps % self.config.train_verbose == 0:
                    _LOG.debug("step %d: loss: %.6f", self._steps, float(loss.detach()))
        self.model.eval()

    def _scores(self, features: list[Array]) -> Any:
        torch = self._torch
        owners = np.repeat(np.arange(len(features)), [len(rows) for rows in features])
        rows = torch.as_tensor(np.concatenate(features), dtype=torch.float32)
        return self.model(rows, torch.as_tensor(owners), len(features))

    def scores(self, features: list[Array]) -> NDArray[np.float64]:
        """Return the outputs of the network for candidates; higher is faster."""
        self.model.eval()
        with self._torch.no_grad(), self._one_thread():
            return np.asarray(self._scores(features).numpy(), "float64")

    def save(self, path: str) -> None:
        """Write weights, optimizer state and data."""
        data = {
            key: ([self._torch.as_tensor(rows) for rows in features], self._torch.as_tensor(costs))
            for key, (features, costs) in self.data.items()
        }
        state = {"network": asdict(self.network), "model": self.model.state_dict(), "data": data}
        self._torch.save(state | {"optimizer": self._optimizer.state_dict(), "full": self._size_at_full}, path)

    def load(self, path: str) -> None:
        """Read a file of :meth:`save`, and replace the present state.

        Raises:
            tilewright.ResourceError: the file is not a stored model.
        """
        try:
            state = self._torch.load(path, weights_only=True)
            self.network = SegmentSumMLPConfig(**state["network"])
            self._begin()
            self.model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
            self._size_at_full = int(state["full"])
            self.data = {
                key: ([rows.numpy() for rows in features], costs.numpy())
                for key, (features, costs) in state["data"].items()
            }
        except Exception as error:  # whatever it finds in the file
            raise ResourceError.of(
                "cost_model/file", f"'{path}' is not a saved cost model: {error}", "give a file of save()"
            ) from error


class MLPModel(CostModel):
    """Rank candidates of one program by a neural network over their stores, with PyTorch.

    Args:
        trainer: the network and how it learns; the published ones by default.

    Raises:
        tilewright.ResourceError: PyTorch is not installed; it is not a dependency of the package.
    """

    def __init__(self, *, trainer: SegmentSumMLPTrainer | None = None) -> None:
        super().__init__()
        self.trainer = trainer or SegmentSumMLPTrainer()
        self.extractor = PerStoreFeature(extract_workload=True)

    def load(self, path: str) -> None:
        """Read a file of :meth:`save`."""
        self.trainer.load(path)

    def save(self, path: str) -> None:
        """Write the network and all data."""
        self.trainer.save(path)

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Add measurements and train. A failed measurement counts as a very slow one."""
        candidates = candidates_in(candidates)
        costs = costs_in(results, len(candidates))
        if not candidates:
            return
        kept, features = self._features(context, candidates)
        if kept:
            self.trainer.learn(key_of(context), features, costs[kept])

    def predict(self, context: Any, candidates: Sequence[Any]) -> NDArray[np.float64]:
        """Return a score for each candidate, higher for faster ones. A candidate without features scores below all
        others."""
        candidates = candidates_in(candidates)
        if not candidates:
            return np.zeros(0)
        kept, features = self._features(context, candidates)
        scores = np.zeros(len(candidates))
        if kept:
            # Searches take what is below zero for nothing.
            scores[kept] = 1 / (1 + np.exp(-self.trainer.scores(features)))
        return scores

    def _features(self, context: Any, candidates: Sequence[Any]) -> tuple[list[int], list[NDArray[Any]]]:
        """Return the positions of candidates that have features, and these."""
        features = features_from(self.extractor, context, candidates, self.trainer.network.input_dim)
        kept = [i for i, rows in enumerate(features) if len(rows)]
        return kept, [features[i] for i in kept]
