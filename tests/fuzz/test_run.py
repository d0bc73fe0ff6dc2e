"""Some seconds of the random test: no finding. That steps of each kind are accepted is asked in test_fuzz.py, of
programs that do not depend on the speed of the machine."""

import pytest

from fuzz.session import Session

#: Programs that every run judges, however slow the machine is, and at most, however fast it is: those that are known
#: to be without a finding.
LEAST, MOST = 20, 100
SECONDS = 10


@pytest.mark.fuzz
@pytest.mark.timeout(900)
def test_some_seconds_without_a_finding() -> None:
    session = Session(print, minimizing=30)
    result = session.run(SECONDS, 1, limit=1, programs=MOST)
    if result.next_seed <= LEAST and not result.findings:
        result = session.run(600, 1, limit=1, programs=LEAST)
    for kind, detail, case, number in result.findings:
        raise AssertionError(f"{detail}\n{session.reproduction(kind, case, number)}")
    assert result.counts["sequences"] > 5 * (result.next_seed - 1)
