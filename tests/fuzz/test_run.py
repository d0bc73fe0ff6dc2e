"""A minute of the random test: no finding, and steps of each kind are accepted."""

import pytest

from fuzz.session import Session
from fuzz.steps import STEPS

#: Programs that every run judges, however slow the machine is, and at most, however fast it is: those that are known
#: to be without a finding.
LEAST, MOST = 40, 200


@pytest.mark.fuzz
@pytest.mark.timeout(900)
def test_a_minute_without_a_finding() -> None:
    session = Session(print, minimizing=30)
    result = session.run(60, 1, limit=1, programs=MOST)
    if result.next_seed <= LEAST and not result.findings:
        result = session.run(600, 1, limit=1, programs=LEAST)
    for kind, detail, case, number in result.findings:
        raise AssertionError(f"{detail}\n{session.reproduction(kind, case, number)}")
    assert result.counts["sequences"] > 5 * (result.next_seed - 1)
    if result.next_seed > 150:
        assert [name for name in STEPS if not result.counts[f"{name} accepted"]] == []
