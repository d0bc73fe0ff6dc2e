"""tvm.meta_schedule.relax_integration: names that can be imported, and refuse to be used."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["compile_relax", "extract_tasks", "extracted_tasks_to_tune_contexts", "tune_relax"]


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError("Tilewright has no Relax programs yet: tune their functions by tune_tir")


compile_relax = extract_tasks = extracted_tasks_to_tune_contexts = tune_relax = _refuse
