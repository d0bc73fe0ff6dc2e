"""Tools for tests of programs, schedules and passes, including users' own tests."""

from tilewright.testing import workloads
from tilewright.testing.check import (
    check,
    check_equivalent,
    check_refused,
    check_same,
    check_schedule,
    check_trace,
    run_in_interpreter,
)

__all__ = [
    "check",
    "check_equivalent",
    "check_refused",
    "check_same",
    "check_schedule",
    "check_trace",
    "run_in_interpreter",
    "workloads",
]
