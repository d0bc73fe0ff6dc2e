"""MetaSchedule: schedules as probabilistic programs, and the search for the best of them. Every part can be replaced by
a subclass.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HERE = "tilewright.meta_schedule"

#: public name -> the module of this package that defines it
_NAMES: dict[str, str] = {
    "ArgInfo": "arg_info",
    "TensorInfo": "arg_info",
    "Builder": "builder",
    "BuilderInput": "builder",
    "BuilderResult": "builder",
    "LocalBuilder": "builder",
    "PyBuilder": "builder",
    "EvaluatorConfig": "evaluator",
    "LocalRunner": "runner",
    "AddToDatabase": "measure_callback",
    "MeasureCallback": "measure_callback",
    "PyMeasureCallback": "measure_callback",
    "RemoveBuildArtifact": "measure_callback",
    "UpdateCostModel": "measure_callback",
    "find_anchor_block": "module_equality",
    "module_hash": "module_equality",
    "modules_equal": "module_equality",
    "MutateComputeLocation": "mutator",
    "MutateParallel": "mutator",
    "MutateThreadBinding": "mutator",
    "MutateTileSize": "mutator",
    "MutateUnroll": "mutator",
    "Mutator": "mutator",
    "PyMutator": "mutator",
    "DisallowAsyncStridedMemCopy": "postproc",
    "DisallowDynamicLoop": "postproc",
    "Postproc": "postproc",
    "PyPostproc": "postproc",
    "RewriteCooperativeFetch": "postproc",
    "RewriteLayout": "postproc",
    "RewriteParallelVectorizeUnroll": "postproc",
    "RewriteReductionBlock": "postproc",
    "RewriteTensorize": "postproc",
    "RewriteUnboundBlock": "postproc",
    "VerifyGPUCode": "postproc",
    "VerifyVTCMLimit": "postproc",
    "Profiler": "profiler",
    "RPCConfig": "runner",
    "RPCRunner": "runner",
    "PyRunner": "runner",
    "PyRunnerFuture": "runner",
    "Runner": "runner",
    "RunnerFuture": "runner",
    "RunnerInput": "runner",
    "RunnerResult": "runner",
    "Database": "database",
    "PyDatabase": "database",
    "TuningRecord": "database",
    "Workload": "database",
    "JSONDatabase": "database",
    "MemoryDatabase": "database",
    "OrderedUnionDatabase": "database",
    "UnionDatabase": "database",
    "ScheduleFnDatabase": "database",
    "PostgresDatabase": "database",
    "SQLiteDatabase": "database",
    "GradientBased": "task_scheduler",
    "PyTaskScheduler": "task_scheduler",
    "RoundRobin": "task_scheduler",
    "TaskRecord": "task_scheduler",
    "TaskScheduler": "task_scheduler",
    "tune_tasks": "tune",
    "tune_tir": "tir_integration",
    "compile_tir": "tir_integration",
    "fork_seed": "tir_integration",
    "derived_object": "derived",
    "normalize_module": "tune_context",
    "PostOpt": "post_optimization",
    "ExtractedTask": "extracted_task",
    "AnalyticalModel": "cost_model",
    "CostModel": "cost_model",
    "PyCostModel": "cost_model",
    "MLPModel": "cost_model",
    "RandomModel": "cost_model",
    "ResidualModel": "cost_model",
    "XGBConfig": "cost_model",
    "XGBModel": "cost_model",
    "FeatureExtractor": "feature_extractor",
    "PyFeatureExtractor": "feature_extractor",
    "PerStoreFeature": "feature_extractor",
    "RandomFeatureExtractor": "feature_extractor",
    "AddRFactor": "schedule_rule",
    "ApplyCustomRule": "schedule_rule",
    "AutoBind": "schedule_rule",
    "AutoInline": "schedule_rule",
    "CrossThreadReduction": "schedule_rule",
    "InlineConstantScalars": "schedule_rule",
    "MultiLevelTiling": "schedule_rule",
    "MultiLevelTilingTensorCore": "schedule_rule",
    "MultiLevelTilingWideVector": "schedule_rule",
    "MultiLevelTilingWithIntrin": "schedule_rule",
    "ParallelizeVectorizeUnroll": "schedule_rule",
    "RandomComputeLocation": "schedule_rule",
    "ReuseType": "schedule_rule",
    "ScheduleRule": "schedule_rule",
    "PyScheduleRule": "schedule_rule",
    "register_custom_rule": "schedule_rule",
    "EvolutionarySearch": "search_strategy",
    "MeasureCandidate": "search_strategy",
    "ReplayFunc": "search_strategy",
    "ReplayTrace": "search_strategy",
    "SearchStrategy": "search_strategy",
    "PySearchStrategy": "search_strategy",
    "CpuRules": "space_generator",
    "PostOrderApply": "space_generator",
    "ScheduleFn": "space_generator",
    "SpaceGenerator": "space_generator",
    "PySpaceGenerator": "space_generator",
    "SpaceGeneratorUnion": "space_generator",
    "schedule_using_anchor_trace": "trace_apply",
    "TuneContext": "tune_context",
}
_MODULES = {*_NAMES.values(), "logging", "utils"}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{_HERE}.{_NAMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{_HERE}.{name}")
    else:
        raise AttributeError(f"module '{_HERE}' has no attribute {name!r}{_perhaps(name)}")
    globals()[name] = value
    return value


def _perhaps(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, [*__all__, *_MODULES], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
