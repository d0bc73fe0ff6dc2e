"""Schedules for programs that have none, by kind of target."""
