import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests.heuristics.cpu.programs import column_sums

import tilewright as tw
from tilewright.heuristics.block_info import block_info
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import Sampler

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def new():
    loader = importlib.machinery.SourceFileLoader("new", str(ROOT / "scripts/new"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("new", loader))
    loader.exec_module(module)
    return module


def test_a_primitive(new, tmp_path, capsys):
    assert new.main(["primitive", "fuse_blocks"], tmp_path) == 0
    source = (tmp_path / "src/schedule/primitives/fuse_blocks.cc").read_text()
    assert "Result<Plan> plan(const State& state, const FuseBlocks& fuse_blocks)" in source
    assert "fuse_blocks/P1" in (tmp_path / "tests/schedule/test_fuse_blocks.py").read_text()
    assert "X(FuseBlocks, fuse_blocks)" in capsys.readouterr().out
    assert "@" not in source


def test_a_pass(new, tmp_path, capsys):
    assert new.main(["pass", "loops/hoist_loads"], tmp_path) == 0
    assert "PassResult hoist_loads(" in (tmp_path / "src/lower/loops/hoist_loads.cc").read_text()
    assert '{"hoist_loads", hoist_loads, ' in capsys.readouterr().out


def test_a_pattern(new, tmp_path, capsys):
    assert new.main(["pattern", "weighted_squares"], tmp_path) == 0
    source = (tmp_path / "python/tilewright/heuristics/cpu/weighted_squares.py").read_text()
    assert source.startswith('"""Weighted squares: ') and "def is_weighted_squares(match: Match) -> bool:" in source
    assert 'Pattern("weighted squares", (is_weighted_squares,), schedule_weighted_squares),' in capsys.readouterr().out


def test_a_pattern_schedules_a_program_once_it_is_filled_in(new, tmp_path):
    """The template is Python, and what it applies is accepted."""
    new.main(["pattern", "weighted_squares"], tmp_path)
    source = (tmp_path / "python/tilewright/heuristics/cpu/weighted_squares.py").read_text()
    filled = source.replace("<a condition on match.info>", "len(match.info.spatial) == 1")
    scope: dict[str, Any] = {"__name__": "weighted_squares"}
    exec(filled, scope)
    schedule = tw.Schedule(column_sums(17, 64))
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    info = block_info(schedule, block)
    match = Match(schedule, info, tw.Target("llvm -mcpu=haswell"), Sampler(schedule, best=True))
    assert scope["is_weighted_squares"](match) and scope["schedule_weighted_squares"](match)
    assert "T.vectorized(8)" in schedule.mod.script()


def test_what_is_there_is_kept(new, tmp_path, capsys):
    path = tmp_path / "tests/lower/test_hoist_loads.py"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert new.main(["pass", "loops/hoist_loads"], tmp_path) == 1
    assert path.read_text() == "mine"
    assert not (tmp_path / "src/lower/loops/hoist_loads.cc").exists()
    assert "is already there" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["pass"], ["rule", "x"], ["pass", "x"], ["pass", "loops/X"], ["pass", "nowhere/x"], ["pass", "../x"]],
)
def test_bad_arguments(new, tmp_path, arguments, capsys):
    assert new.main(arguments, tmp_path) == 2
    assert capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
