"""The modules of ``meta_schedule`` have the names that TVM 0.20 gives them, and in each of them what TVM has there."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

import pytest

from tilewright import meta_schedule as ms

#: The public names of each module of tvm.meta_schedule. Not here: what only talks to other machines, or to Relax.
TVM = {
    "arg_info": "ArgInfo TensorInfo",
    "builder": "Builder BuilderInput BuilderResult LocalBuilder PyBuilder create",
    "cost_model": "CostModel MLPModel PyCostModel RandomModel XGBModel",
    "database": "Database JSONDatabase MemoryDatabase OrderedUnionDatabase PyDatabase ScheduleFnDatabase TuningRecord "
    "UnionDatabase Workload create",
    "extracted_task": "ExtractedTask",
    "feature_extractor": "FeatureExtractor PerStoreFeature PyFeatureExtractor RandomFeatureExtractor",
    "logging": "get_logger get_loggers_from_work_dir get_logging_func",
    "measure_callback": "AddToDatabase MeasureCallback PyMeasureCallback RemoveBuildArtifact UpdateCostModel",
    "mutator": "MutateComputeLocation MutateParallel MutateThreadBinding MutateTileSize MutateUnroll Mutator PyMutator",
    "post_optimization": "PostOpt",
    "postproc": "DisallowAsyncStridedMemCopy DisallowDynamicLoop Postproc PyPostproc RewriteCooperativeFetch "
    "RewriteLayout RewriteParallelVectorizeUnroll RewriteReductionBlock RewriteTensorize RewriteUnboundBlock "
    "VerifyGPUCode VerifyVTCMLimit",
    "profiler": "Profiler",
    "runner": "EvaluatorConfig LocalRunner PyRunner PyRunnerFuture RPCConfig RPCRunner Runner RunnerFuture RunnerInput "
    "RunnerResult create",
    "schedule_rule": "AddRFactor ApplyCustomRule AutoBind AutoInline CrossThreadReduction InlineConstantScalars "
    "MultiLevelTiling MultiLevelTilingTensorCore MultiLevelTilingWideVector MultiLevelTilingWithIntrin "
    "ParallelizeVectorizeUnroll PyScheduleRule RandomComputeLocation ReuseType ScheduleRule",
    "search_strategy": "EvolutionarySearch MeasureCandidate PySearchStrategy ReplayFunc ReplayTrace SearchStrategy "
    "create",
    "space_generator": "PostOrderApply PySpaceGenerator ScheduleFn SpaceGenerator SpaceGeneratorUnion create",
    "task_scheduler": "GradientBased PyTaskScheduler RoundRobin TaskScheduler create",
    "tir_integration": "compile_tir tune_tir",
    "trace_apply": "schedule_using_anchor_trace",
    "tune": "tune_tasks",
    "tune_context": "TuneContext",
    "utils": "cpu_count derived_object fork_seed",
}


@pytest.mark.parametrize(
    "home", ["tilewright.meta_schedule", "tilewright.compat.tvm.meta_schedule", "tvm.meta_schedule"]
)
@pytest.mark.parametrize("module", TVM)
def test_modules(home: str, module: str) -> None:
    imported = importlib.import_module(f"{home}.{module}")
    assert getattr(importlib.import_module(home), module) is imported
    missing = [name for name in TVM[module].split() if not hasattr(imported, name)]
    assert not missing


def test_a_name_is_one_thing_wherever_it_is_found() -> None:
    assert ms.runner.LocalRunner is ms.LocalRunner
    assert ms.database.MemoryDatabase is ms.MemoryDatabase
    assert ms.utils.derived_object is ms.derived_object
    assert isinstance(ms.database.create("memory"), ms.MemoryDatabase)
    assert ms.logging.get_logger("one") is logging.getLogger("one")


def test_modules_that_their_package_imports() -> None:
    import tvm

    assert callable(tvm.tir.schedule.analysis.has_block)
    assert tvm.tir.tensor_intrin.cuda.WARP_SIZE == 32


def test_a_name_that_is_nowhere() -> None:
    with pytest.raises(AttributeError, match=r"'tilewright.meta_schedule' has no .*; did you mean 'LocalRunner'\?"):
        _ = ms.LocalRuner
    with pytest.raises(ImportError, match="cannot import name 'Nobody'"):
        from tilewright.meta_schedule.database import Nobody  # noqa: F401


def test_loggers_write_to_files(tmp_path: Path) -> None:
    (logger,) = ms.logging.get_loggers_from_work_dir(str(tmp_path), ["first"])
    ms.logging.get_logging_func(logger)(logging.INFO, "hello")
    (file,) = (tmp_path / "logs").glob("*first*")
    assert "hello" in file.read_text()
