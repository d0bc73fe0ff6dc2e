"""Results that end at about the same time come in one request, and one that cannot be had costs no other one."""

from __future__ import annotations

import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from tilewright.cluster.fetcher import Fetcher


class Client:
    """As far as a fetcher uses Dask's: results by name, some of which cannot be fetched."""

    def __init__(self, results: dict[str, bytes | BaseException]) -> None:
        self.results = results
        self.requests: list[list[str]] = []

    def future(self, name: str) -> Any:
        def result(timeout: float) -> bytes:
            self.requests.append([name])
            return self._get(name)

        return types.SimpleNamespace(key=name, result=result)

    def _get(self, name: str) -> bytes:
        result = self.results[name]
        if isinstance(result, BaseException):
            raise result
        return result

    def gather(self, futures: list[Any], *, asynchronous: bool) -> list[bytes]:
        assert asynchronous
        self.requests.append([future.key for future in futures])
        return [self._get(future.key) for future in futures]

    def sync(self, function: Any, callback_timeout: float) -> Any:
        return function()

    def who_has(self, futures: list[Any]) -> dict[str, list[str]]:
        return {future.key: [f"worker of {future.key}"] for future in futures}


class Fetching:
    """A fetcher whose pause ends when a test says so."""

    def __init__(self, results: dict[str, bytes | BaseException]) -> None:
        self.client, self.came, self._go = Client(results), {}, threading.Event()
        self._done = threading.Semaphore(0)
        self.fetcher = Fetcher(lambda: self.client, self._pause, self._take)
        for name in results:
            self.fetcher.add(name, self.client.future(name))
        self._go.set()
        for _ in results:
            assert self._done.acquire(timeout=60)

    def _pause(self) -> float:
        assert self._go.wait(60)
        return 0.0

    def _take(self, label: str, result: Any, worker: str) -> None:
        self.came[label] = result, worker
        self._done.release()


@pytest.fixture
def fetch() -> Iterator[Any]:
    made: list[Fetching] = []

    def call(**results: bytes | BaseException) -> Fetching:
        made.append(Fetching(results))
        return made[-1]

    yield call
    for each in made:
        each.fetcher.close()
        each.fetcher.add("late", each.client.future("late"))  # nothing waits for it


def test_what_ends_together_is_one_request(fetch: Any) -> None:
    fetching = fetch(a=b"1", b=b"2", c=b"3")
    assert fetching.client.requests == [["a", "b", "c"]]
    assert fetching.came == {"a": (b"1", ""), "b": (b"2", ""), "c": (b"3", "")}


def test_one_that_is_refused_or_lost_costs_no_other(fetch: Any) -> None:
    refused, lost = TypeError("would have to be unpickled"), OSError("the worker is gone")
    fetching = fetch(a=b"1", b=refused, c=b"3", d=lost)
    assert fetching.came == {"a": (b"1", ""), "b": (refused, "worker of b"), "c": (b"3", ""), "d": (lost, "")}
    assert fetching.fetcher.holder(fetching.client.future("a")) == "worker of a"
    assert fetching.fetcher.holder(None) == ""
    assert sorted(fetching.client.requests[1:]) == [["a"], ["b"], ["c"], ["d"]]
