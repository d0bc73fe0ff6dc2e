"""The package as a whole: its names, and what importing it costs."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import tilewright as tw
from tilewright import timing
from tilewright.search.formats import FormatChoice
from tilewright.support import other_names
from tilewright.support.notes import Note
from tilewright.testing.workloads import matmul


def test_every_public_name_is_there() -> None:
    for name in tw.__all__:
        assert getattr(tw, name) is not None
        assert name in dir(tw)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tw.nothing


def test_modules_are_attributes() -> None:
    """Also where nothing has imported them; a module that moved is no suggestion for a name."""
    code = "import tilewright as tw; print(tw.meta_schedule.tune_tir.__name__, tw.te.compute.__name__)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["tune_tir", "compute"]
    with pytest.raises(AttributeError) as caught:
        _ = tw.meta_scheduler_rpc
    assert "'meta_schedule'" in str(caught.value)


def test_importing_loads_nothing_heavy() -> None:
    """Terminals, tables, the compiler and NumPy wait until they are used."""
    code = "import sys, tilewright; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "tilewright.errors" in loaded
    assert not {"numpy", "rich", "typer", "torch", "ml_dtypes", "tilewright._core"} & set(loaded)
    assert not {"importlib.resources", "tempfile", "pathlib"} & set(loaded)  # half of the time to import the rest


def test_looking_at_the_compiler_loads_no_command_line() -> None:
    code = "import sys, tilewright as tw; tw.compile, tw.Schedule, tw.tune, tw.space; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "tilewright.search.session" in loaded
    assert not {"rich", "typer", "torch", "threadpoolctl"} & set(loaded)
    # Searches on this machine need no cluster, and read versions without the metadata of packages.
    assert not {"asyncio", "ssl", "concurrent.futures", "email", "importlib.metadata"} & set(loaded)


def test_what_was_perhaps_meant():
    import tilewright.meta_schedule as ms

    for module, wrong, right in ((tw, "comple", "compile"), (tw, "tunes", "tune"), (ms, "tune_tirr", "tune_tir")):
        with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
            getattr(module, wrong)
    with pytest.raises(AttributeError) as caught:
        _ = tw.zzzzzz
    assert "did you mean" not in str(caught.value)


def test_products_of_floats_do_without_instructions_on_tensors() -> None:
    """Their scripts take a second to read."""
    code = """
import sys, tilewright as tw
from tilewright.testing import workloads
kernel = tw.compile(workloads.matmul(64, 64, 64), "llvm -mcpu=znver4", schedule="by rules")
assert "C_local" in kernel.inspect("tir")
print(*sys.modules)
"""
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "tilewright.heuristics.cpu" in loaded
    assert "tilewright.tensor_intrin" not in loaded


def test_modules_have_their_earlier_names_too() -> None:
    """An import, an attribute of the package and a pickle that names the module by itself all yield the same one."""
    code = """
import importlib, pickle, sys
import tilewright as tw
from tilewright.support import other_names
assert tw.machine.cpu_count is importlib.import_module("tilewright.support.machine").cpu_count
for earlier, name in other_names.MOVED.items():
    module = importlib.import_module(earlier)
    assert module is importlib.import_module(name) and module.__spec__.name == module.__name__ == name, name
    assert getattr(tw, earlier.removeprefix("tilewright.")) is module
for written, name in (("machine Roof", "tilewright.support.machine"), ("task Task", "tilewright.task.task"),
                      ("kernel KernelModule", "tilewright.kernel.kernel"), ("tables Table", "tilewright.tables")):
    module, kind = written.split()
    assert pickle.loads(f"ctilewright.{module}\\n{kind}\\n.".encode()) is getattr(sys.modules[name], kind)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_was_renamed_has_its_earlier_name_too() -> None:
    for owner, names in other_names.RENAMED.items():
        for earlier, present in names.items():
            with pytest.warns(DeprecationWarning, match=f"{earlier} is now called {present}"):
                assert other_names.renamed(owner, earlier) == present
        with pytest.raises(AttributeError, match="has no attribute 'zzz'"):
            other_names.renamed(owner, "zzz")
    with pytest.warns(DeprecationWarning, match="time_in_turn is now called time_interleaved"):
        assert timing.time_in_turn is timing.time_interleaved
    with pytest.warns(DeprecationWarning):
        assert pickle.loads(b"ctilewright.timing\nInTurn\n.") is timing.InterleavedTimes
    with pytest.raises(AttributeError):
        _ = timing.zzz
    result = tw.ModuleResult(tw.ir.Module({}), {}, {"main": "why"})
    with pytest.warns(DeprecationWarning, match="left_out is now called untuned"):
        assert result.left_out == result.untuned == {"main": "why"}
    with pytest.raises(AttributeError):
        _ = result.zzz


def test_earlier_names_of_functions_and_attributes() -> None:
    for owner, names in other_names.RENAMED.items():
        module = None if owner.rpartition(".")[2][0].isupper() else importlib.import_module(owner)
        for earlier, present in names.items() if module else ():
            with pytest.warns(DeprecationWarning, match=f"{earlier} is now called {present}"):
                assert getattr(module, earlier) is getattr(module, present)
    choice = FormatChoice("A", "csr", (8, 8), 0, tw.Schedule(matmul(4, 4, 4)), (), failure="no candidate")
    calls = timing.KernelCalls(tw.compile(matmul(4, 4, 4)), ())
    with pytest.warns(DeprecationWarning, match="is now called"):
        assert choice.why == "no candidate" and calls.spend == calls.seconds_of
        assert Note("lower/not-vectorized", "f", "m").asked
