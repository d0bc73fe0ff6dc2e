"""What the command line says of a search that was stopped."""

from types import SimpleNamespace

import pytest

from tilewright.cli.commands import say_interrupted


@pytest.mark.parametrize(
    ("phase", "trials", "best", "said"),
    [
        (
            "preparing",
            0,
            None,
            "interrupted before the search began; what db holds is as it was, and the same command continues",
        ),
        (
            "search",
            0,
            None,
            "interrupted before the first of 30 trials; what db holds is as it was, and the same command continues",
        ),
        ("search", 7, None, "interrupted after 7 of 30 trials; they are kept in db, and the same command continues"),
        (
            "search",
            7,
            2.5e-6,
            "interrupted after 7 of 30 trials, the best takes 2.5 us; they are kept in db, and the same command "
            "continues",
        ),
    ],
)
def test_what_is_kept(phase, trials, best, said, capsys):
    record = None if best is None else SimpleNamespace(median=best)
    say_interrupted(
        SimpleNamespace(progress=SimpleNamespace(phase=phase, trials=trials, total=30), record=record), "db"
    )
    assert capsys.readouterr().err == said + "\n"
