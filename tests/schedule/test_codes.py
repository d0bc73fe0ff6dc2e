"""Every code of a refusal is provoked by some test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_has_a_test():
    raised = set()
    for path in [*(ROOT / "src/schedule").rglob("*.cc"), *(ROOT / "src/schedule").rglob("*.h")]:
        if not path.name.endswith("_test.cc"):
            raised |= set(re.findall(r'"([a-z_]+/(?:P\d+|[a-z-]+))"', path.read_text()))
    tests = "".join(path.read_text() for path in (ROOT / "tests/schedule").glob("*.py"))
    tests += (ROOT / "src/schedule/schedule_test.cc").read_text()
    # What the IR says is given another code.
    missing = sorted(code for code in raised - {"ir/int-range"} if f'"{code}"' not in tests)
    assert not missing
