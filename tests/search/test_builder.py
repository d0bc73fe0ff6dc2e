"""Builders."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from tests.search.programs import AddOne, Product

import tilewright as tw
from tilewright.kernel import load_object_code
from tilewright.meta_schedule import Builder, BuilderInput, BuilderResult, LocalBuilder, named_functions
from tilewright.meta_schedule.builder import remove_build_dir

LLVM = tw.Target("llvm")


@pytest.fixture(autouse=True)
def no_files_are_left(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def build(builder: LocalBuilder, *modules: tw.ir.IRModule) -> list[BuilderResult]:
    try:
        return builder.build([BuilderInput(module, LLVM) for module in modules])
    finally:
        builder.close()


def test_what_is_built_computes():
    first, second = build(LocalBuilder(max_workers=2), AddOne, Product)
    assert first.error_msg is None and second.error_msg is None
    kernel = load_object_code(Path(first.artifact_path).read_bytes())
    a = np.arange(64, dtype=np.float32)
    b = np.empty_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a + 1)
    for result in (first, second):
        remove_build_dir(result.artifact_path)


def test_one_that_crashes_or_hangs_costs_itself_alone():
    def f_build(mod, target, params):
        name = next(iter(mod.functions))
        if name == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        while name == "hang":
            time.sleep(0.01)
        return tw.compile(mod, target)

    function = AddOne["main"]
    modules = [tw.ir.IRModule({name: function}) for name in ("crash", "fine", "hang", "fine")]
    started = time.monotonic()
    results = build(LocalBuilder(max_workers=2, timeout_sec=3, f_build=f_build), *modules)
    assert time.monotonic() - started < 60
    assert "SIGSEGV" in results[0].error_msg and results[0].artifact_path is None
    assert results[2].error_msg.startswith("LocalBuilder: Timeout, killed after 3 seconds")
    for fine in (results[1], results[3]):
        assert fine.error_msg is None
        remove_build_dir(fine.artifact_path)


def test_without_a_folder_for_temporary_files_each_candidate_fails(monkeypatch, tmp_path):
    builder = LocalBuilder(max_workers=1)
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        results = builder.build([BuilderInput(AddOne, LLVM), BuilderInput(Product, LLVM)])
    assert all("FileNotFoundError" in result.error_msg for result in results)
    (fine,) = build(builder, AddOne)  # no process was lost
    assert fine.error_msg is None
    remove_build_dir(fine.artifact_path)


def test_programs_that_cannot_be_compiled():
    (result,) = build(LocalBuilder(max_workers=1), tw.ir.IRModule({}))
    assert result.error_msg.startswith("LocalBuilder: An exception occurred\n")
    assert result.artifact_path is None


def test_functions_that_cannot_travel():
    import threading

    lock = threading.Lock()
    builder = LocalBuilder(max_workers=1, f_build=lambda mod, target, params: lock)
    (result,) = build(builder, AddOne)
    assert result.error_msg.startswith("LocalBuilder: An exception occurred\n")


def test_functions_by_name():
    def initializer():
        named_functions.register("test.export", lambda kernels: f"/nowhere/{kernels.name}")

    (result,) = build(LocalBuilder(max_workers=1, f_export="test.export", initializer=initializer), AddOne)
    assert result.artifact_path == "/nowhere/main"
    assert named_functions.find("test.export") is None


def test_names_that_workers_do_not_have():
    with pytest.raises(tw.ArgumentError) as error:
        LocalBuilder(f_build="test.unknown")
    assert error.value.code == "functions/unknown"

    def initializer():
        raise ValueError("not today")

    with pytest.raises(tw.ArgumentError, match="not today") as error:
        LocalBuilder(f_build="test.unknown", initializer=initializer)
    assert error.value.code == "worker/initializer"


def test_kinds():
    class Mine(Builder):
        def build(self, build_inputs):
            return [BuilderResult(None, "no")] * len(build_inputs)

    mine = Mine()
    assert Builder.create(mine) is mine
    assert isinstance(Builder.create("local", max_workers=3), LocalBuilder)
    with pytest.raises(tw.ArgumentError) as error:
        Builder.create("remote")
    assert error.value.code == "builder/kind"
    with pytest.raises(TypeError):
        Builder()


def test_files_of_others_are_not_removed(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    remove_build_dir(str(tmp_path / "kernel.o"))
    remove_build_dir("test_build")
    (tmp_path / "kernel.o").write_text("x")
    remove_build_dir(str(tmp_path / "kernel.o"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_is_built_is_a_kernel_that_can_be_loaded():
    """As a runner of one's own does."""
    (built,) = build(LocalBuilder(max_workers=1), Product)
    kernel = tw.load(built.artifact_path)
    assert kernel.parameters
    remove_build_dir(built.artifact_path)
    with pytest.raises(tw.ResourceError, match="cannot be loaded: No such file"):
        tw.load(built.artifact_path)
