"""The random test: random programs, random schedules, and what must hold of them."""
