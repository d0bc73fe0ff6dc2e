"""Heuristic schedules for unscheduled programs, by kind of target."""
