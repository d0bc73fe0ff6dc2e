"""MetaSchedule: schedules as probabilistic programs, and the search for the best of them. Every part can be replaced by
a subclass.

Names are loaded when they are first used.
"""

from __future__ import annotations

from tilewright.support.lazy_names import lazy

#: public name -> the module of this package that defines it
_DEFINED_IN = {
    "arg_info": ("ArgInfo", "TensorInfo"),
    "builder": ("Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder"),
    "evaluator": ("EvaluatorConfig",),
    "runner": (
        "LocalRunner",
        "RPCConfig",
        "RPCRunner",
        "PyRunner",
        "PyRunnerFuture",
        "Runner",
        "RunnerFuture",
        "RunnerInput",
        "RunnerResult",
    ),
    "measure_callback": (
        "AddToDatabase",
        "MeasureCallback",
        "PyMeasureCallback",
        "RemoveBuildArtifact",
        "UpdateCostModel",
    ),
    "module_equality": ("find_anchor_block", "module_hash", "modules_equal"),
    "mutator": (
        "MutateComputeLocation",
        "MutateParallel",
        "MutateThreadBinding",
        "MutateTileSize",
        "MutateUnroll",
        "Mutator",
        "PyMutator",
    ),
    "postproc": (
        "DisallowAsyncStridedMemCopy",
        "DisallowDynamicLoop",
        "Postproc",
        "PyPostproc",
        "RewriteCooperativeFetch",
        "RewriteLayout",
        "RewriteParallelVectorizeUnroll",
        "RewriteReductionBlock",
        "RewriteTensorize",
        "RewriteUnboundBlock",
        "VerifyGPUCode",
        "VerifyVTCMLimit",
    ),
    "profiler": ("Profiler",),
    "database": (
        "Database",
        "PyDatabase",
        "TuningRecord",
        "Workload",
        "JSONDatabase",
        "MemoryDatabase",
        "OrderedUnionDatabase",
        "UnionDatabase",
        "ScheduleFnDatabase",
        "PostgresDatabase",
        "SQLiteDatabase",
    ),
    "task_scheduler": ("GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler"),
    "tune": ("tune_tasks",),
    "tir_integration": ("tune_tir", "compile_tir", "fork_seed"),
    "derived": ("derived_object",),
    "tune_context": ("normalize_module", "TuneContext"),
    "post_optimization": ("PostOpt",),
    "extracted_task": ("ExtractedTask",),
    "cost_model": (
        "AnalyticalModel",
        "CostModel",
        "PyCostModel",
        "MLPModel",
        "RandomModel",
        "ResidualModel",
        "XGBConfig",
        "XGBModel",
    ),
    "feature_extractor": ("FeatureExtractor", "PyFeatureExtractor", "PerStoreFeature", "RandomFeatureExtractor"),
    "schedule_rule": (
        "AddRFactor",
        "ApplyCustomRule",
        "AutoBind",
        "AutoInline",
        "CrossThreadReduction",
        "InlineConstantScalars",
        "MultiLevelTiling",
        "MultiLevelTilingTensorCore",
        "MultiLevelTilingWideVector",
        "MultiLevelTilingWithIntrin",
        "ParallelizeVectorizeUnroll",
        "RandomComputeLocation",
        "ReuseType",
        "ScheduleRule",
        "PyScheduleRule",
        "register_custom_rule",
    ),
    "search_strategy": (
        "EvolutionarySearch",
        "MeasureCandidate",
        "ReplayFunc",
        "ReplayTrace",
        "SearchStrategy",
        "PySearchStrategy",
    ),
    "space_generator": (
        "CpuRules",
        "PostOrderApply",
        "ScheduleFn",
        "SpaceGenerator",
        "PySpaceGenerator",
        "SpaceGeneratorUnion",
    ),
    "trace_apply": ("schedule_using_anchor_trace",),
}
_NAMES = {name: module for module, names in _DEFINED_IN.items() for name in names}
_MODULES = {*_DEFINED_IN, "logging", "utils"}

__all__ = [*_NAMES]
__getattr__ = lazy(__name__, _NAMES, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
