"""How many random cases a test samples: few in every run of the suite, more where the environment asks for them.

`TILEWRIGHT_SAMPLES=10 python -m pytest -k random` multiplies all of these numbers by ten. Seeds begin at 0, so that the
cases of a shorter run are among those of a longer one.
"""

import os

FACTOR = float(os.environ.get("TILEWRIGHT_SAMPLES", "1"))


def samples(count: int) -> int:
    """Return how many cases to sample where a run of the suite samples `count`."""
    return max(1, round(count * FACTOR))


def seeds(part: int, count: int) -> range:
    """Return the seeds of one part of a test that is cut into parts of `count` cases."""
    size = samples(count)
    return range(part * size, part * size + size)
