"""Parameters that the heuristics for CPUs and GPUs share."""

from __future__ import annotations

from tilewright import _core

#: cycles per vector (src/target/machine_model.def) of a function such as exp, and of a division
ELEMENTARY_CYCLES = _core.machine_model()["elementary_cycles"]
DIVISION_CYCLES = _core.machine_model()["division_cycles"]
#: cycles of a vector up to which computing it again is cheaper than storing it and loading it from a cache
INLINED_CYCLES = 4.0
#: maximum number of unrolled steps of a window
WINDOW_TERMS = 32
#: assumed extent of an axis of unknown size
TYPICAL_EXTENT = 512
#: maximum number of index names (`a = T.max(v - 1, 0)`) that are substituted in a block, since each may make it larger
SUBSTITUTED_NAMES = 8
#: number of blocks whose accesses are cached, and of those whose tiles are
REMEMBERED = 64
