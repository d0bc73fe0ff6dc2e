"""Who of the workers of a host may use its processors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from tilewright import _core
from tilewright.cluster import processors
from tilewright.errors import ResourceError


def patient() -> Callable[[], None]:
    return processors.waiting(60.0, lambda: True)


def hasty() -> Callable[[], None]:
    return processors.waiting(0.1, lambda: True)


def test_a_host_measures_one_kernel_at_a_time() -> None:
    with processors.measuring(1, 1, patient()):
        with pytest.raises(ResourceError) as error, processors.measuring(1, 1, hasty()):
            pass
        assert error.value.code == "cluster/busy-host"
    with processors.measuring(1, 1, hasty()) as slot:
        assert slot == 0


def test_builds_share_what_a_kernel_leaves() -> None:
    measure, build, exclusive = _core.plan_processors(1)
    assert exclusive == (measure == build)
    if exclusive:
        pytest.skip("one processor: nothing is left")
    with processors.measuring(1, 1, patient()), processors.building(1, hasty()), processors.building(1, hasty()):
        pass


def test_builds_wait_for_a_kernel_that_has_all_processors() -> None:
    everything = len(os.sched_getaffinity(0))
    measuring, building = processors.measuring, processors.building
    with measuring(everything, 1, patient()), pytest.raises(ResourceError), building(everything, hasty()):
        pass
    with building(everything, patient()), pytest.raises(ResourceError), measuring(everything, 1, hasty()):
        pass


def test_a_measurement_comes_before_later_builds() -> None:
    everything = len(os.sched_getaffinity(0))
    order: list[str] = []
    building = processors.building(everything, patient())
    with building:

        def measure() -> None:
            with processors.measuring(everything, 1, patient()):
                order.append("measure")

        waiting = threading.Thread(target=measure)
        waiting.start()
        while not (processors.folder() / f"gate-{_core.plan_processors(everything)[0][0]}").exists():
            time.sleep(0.01)
        time.sleep(0.2)  # it holds the gate now, or will be the next to do so

        def build() -> None:
            with processors.building(everything, patient()):
                order.append("build")

        later = threading.Thread(target=build)
        later.start()
        time.sleep(0.1)
    waiting.join(60)
    later.join(60)
    assert sorted(order) == ["build", "measure"]
    assert order[0] == "measure"


def test_a_canceled_task_does_not_wait() -> None:
    unwanted = processors.waiting(60.0, lambda: False)
    with (
        processors.measuring(1, 1, patient()),
        pytest.raises(processors.Canceled),
        processors.measuring(1, 1, unwanted),
    ):
        pass


def test_only_the_first_worker_of_a_host_measures() -> None:
    first, second = processors.Measures(), processors.Measures()
    assert (first.first, second.first) == (True, False)
    first.close()
    second.close()
    third = processors.Measures()
    assert third.first
    third.close()
