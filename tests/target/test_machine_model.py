"""The table of what a processor does: src/target/machine_model.def."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright import _core
from tilewright.heuristics.cpu import estimates, parameters

ROOT = Path(__file__).parents[2]


def test_every_number_is_read_by_an_estimate() -> None:
    sources = [path.read_text() for path in (ROOT / "src/search/cost_model").glob("*.cc")]
    sources += [path.read_text() for path in (ROOT / "python/tilewright/heuristics").rglob("parameters.py")]
    for name in _core.machine_model():
        assert any(
            f"machine_.{name}" in text or f"machine.{name}" in text or f'["{name}"]' in text for text in sources
        ), name


def test_ports_and_latency_bound_the_cycles_of_a_step() -> None:
    machine = _core.machine_model()
    ports, latency = machine["fma_ports"], machine["fma_latency_cycles"]
    enough = int(ports * latency)
    assert enough == parameters.BUSY_ACCUMULATORS
    assert estimates.port_cycles(enough, 0) == enough / ports
    assert estimates.port_cycles(1, 0) == latency  # a single accumulator waits for itself
    assert estimates.port_cycles(enough, 100) == 100 / machine["load_ports"]


@pytest.mark.parametrize("name", ["l1_way_bytes", "line_bytes", "l2_way_bytes"])
def test_sizes_are_powers_of_two(name: str) -> None:
    size = int(_core.machine_model()[name])
    assert size & (size - 1) == 0 and size == _core.machine_model()[name]
