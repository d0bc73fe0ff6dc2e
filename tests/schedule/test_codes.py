"""Every code of a refusal is provoked by some test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_has_a_test():
    raised = set()
    for path in [*(ROOT / "src/schedule").rglob("*.cc"), *(ROOT / "src/schedule").rglob("*.h")]:
        if not path.name.endswith("_test.cc"):
            raised |= set(re.findall(r'"([a-z_]+/(?:P\d+|[a-z-]+))"', path.read_text()))
    folders = ROOT / "tests/schedule", ROOT / "tests/support", ROOT / "tests/sparse"
    tests = "".join(path.read_text() for folder in folders for path in folder.glob("*.py"))
    tests += (ROOT / "src/schedule/schedule_test.cc").read_text()
    # What the IR says is given another code.
    missing = sorted(code for code in raised if not code.startswith("ir/") and f'"{code}"' not in tests)
    assert not missing
