"""tvm.meta_schedule: the search for schedules. Its modules are loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from tilewright.compat.tvm.alias import missing

_HERE = "tilewright.compat.tvm.meta_schedule"
_MODULES = (
    "arg_info",
    "builder",
    "database",
    "extracted_task",
    "logging",
    "cost_model",
    "feature_extractor",
    "measure_callback",
    "mutator",
    "post_optimization",
    "post_opt",
    "postproc",
    "profiler",
    "relax_integration",
    "runner",
    "schedule_rule",
    "search_strategy",
    "space_generator",
    "task_scheduler",
    "testing",
    "tir_integration",
    "trace_apply",
    "tune",
    "tune_context",
    "utils",
)
#: name -> the module above that has it
_NAMES = {
    "ArgInfo": "arg_info",
    "Builder": "builder",
    "Database": "database",
    "ExtractedTask": "extracted_task",
    "CostModel": "cost_model",
    "FeatureExtractor": "feature_extractor",
    "MeasureCallback": "measure_callback",
    "MeasureCandidate": "search_strategy",
    "Mutator": "mutator",
    "Postproc": "postproc",
    "Profiler": "profiler",
    "Runner": "runner",
    "ScheduleRule": "schedule_rule",
    "SearchStrategy": "search_strategy",
    "SpaceGenerator": "space_generator",
    "TaskScheduler": "task_scheduler",
    "TensorInfo": "arg_info",
    "TuneContext": "tune_context",
    "derived_object": "derived",
    "tune_tasks": "tune",
    "tune_tir": "tir_integration",
}
_missing = missing("tvm.meta_schedule")

__all__ = [*_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{_HERE}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{_HERE}.{_NAMES[name]}"), name)
    return _missing(name)
