"""The numbers that heuristics for processors and for devices share."""

from __future__ import annotations

from tilewright import _core

#: cycles of a vector (src/target/machine_model.def): of a function such as exp, and of a division
ELEMENTARY_CYCLES = _core.machine_model()["elementary_cycles"]
DIVISION_CYCLES = _core.machine_model()["division_cycles"]
#: cycles of a vector up to which computing it again is cheaper than storing it and loading it from a cache
INLINED_CYCLES = 4.0
#: most steps of a window that are unrolled
WINDOW_TERMS = 32
#: size of an axis of which nothing is known
TYPICAL_EXTENT = 512
#: names of index arithmetic that are substituted in a block, which may grow with each
SUBSTITUTED_NAMES = 8
#: blocks whose accesses, and whose tiles, are remembered
REMEMBERED = 64
