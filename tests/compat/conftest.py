"""`import tvm` means Tilewright in the tests of the alias, which change nothing that other tests of the process see."""

import contextlib
import io
import runpy
import textwrap

import pytest

import tilewright.compat.tvm  # noqa: F401
from tilewright.compat.tvm.printing import AS_TVM, written_in


@pytest.fixture
def words_of_tvm():
    """Programs and traces are printed as TVM prints them."""
    with written_in(AS_TVM):
        yield


@pytest.fixture
def python(tmp_path, monkeypatch):
    """Runs texts as one script and gives what it prints."""

    def call(*texts):
        path = tmp_path / "program.py"
        path.write_text("\n".join(textwrap.dedent(text) for text in texts))
        monkeypatch.chdir(tmp_path)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path(str(path), run_name="__main__")
        return printed.getvalue().splitlines()

    return call


@pytest.fixture
def target(request):
    """The target of a test that runs for several."""
    return getattr(request, "param", "llvm")


@pytest.fixture
def dev(target):
    """Its device."""
    from tilewright.kernel.device import device

    return device(str(target))
