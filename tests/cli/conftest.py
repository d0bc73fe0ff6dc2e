"""Scripts of a user, and the command line run on them in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tilewright.cli.commands import app

HEAD = """\
import tilewright as tw
from tilewright.script import tir as T
"""

PRODUCT = (
    HEAD
    + """
N = 64


@T.prim_func
def product(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vj, vk]


@tw.space(product, reference=lambda a, b: a @ b.T)
def tiles(sch):
    i, j, k = sch.get_loops(sch.get_block("C"))
    i_tiles = sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=16))
    j_out, j_in = sch.split(j, factors=[None, sch.sample_categorical([8, 16], [1 / 3, 2 / 3])])
    sch.reorder(i_tiles[0], j_out, k, i_tiles[1], j_in)
    sch.vectorize(j_in)
    sch.decompose_reduction(sch.get_block("C"), k)
"""
)

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the user, with a script in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "product.py").write_text(PRODUCT)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Runs the command line in the user's folder."""

    def run(*arguments: str) -> Result:
        assert Path.cwd() == folder
        return CliRunner().invoke(app, arguments)

    return run


@pytest.fixture
def environment() -> dict[str, str]:
    """For commands in a process of their own."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "python"), "TERM": "xterm-256color"}
