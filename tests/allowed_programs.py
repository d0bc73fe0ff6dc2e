"""Tests find the programs of `requirements/packages.txt` alone, which set-up installs, so that none relies on another.

On Debian, PATH becomes a folder of links to the programs of that table and to those of essential packages, beside the
Python environment. Elsewhere nothing changes.
"""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "requirements/packages.txt"


class UnlistedProgramError(AssertionError):
    """A test reaches for a program that set-up does not install."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"a test reaches for '{program}', which scripts/setup does not install: add its package to "
            f"{TABLE.relative_to(ROOT)}"
        )


def rows() -> list[tuple[str, str, list[str]]]:
    """Package, who needs it, its programs."""
    lines = [line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [(package, needed, programs) for package, needed, *programs in lines]


def listed() -> list[str]:
    """Names of programs, and folders of those that are not on PATH, which end in a slash."""
    return [program for _, needed, programs in rows() if needed != "check" for program in programs if program != "-"]


@functools.cache
def _essential() -> set[str]:
    """Names of the programs that every Debian has, bash and coreutils among them."""
    show = ["dpkg-query", "-W", "-f", "${Package} ${Essential}\n"]
    packages = subprocess.run(show, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [line.split()[0] for line in packages if line.endswith(" yes")]
    files = subprocess.run(["dpkg-query", "-L", *names], capture_output=True, text=True, check=True).stdout.splitlines()
    # awk and the like are names that packages choose among themselves.
    chosen = os.listdir("/etc/alternatives") if os.path.isdir("/etc/alternatives") else []
    return {os.path.basename(file) for file in files if "/bin/" in file or "/sbin/" in file} | {
        name for name in chosen if name in ("awk", "nawk")
    }


def _compilers_of_python() -> set[str]:
    """Other names of the listed compilers: builds of extensions call them as Python's own build did."""
    names = (sysconfig.get_config_var(variable) or "" for variable in ("CC", "CXX"))
    return {name.split()[0] for name in names if name.split()}


def _link(names: Iterable[str], path: str, folder: Path) -> None:
    for name in names:
        found = shutil.which(name, path=path)
        if found and not (folder / name).is_symlink():
            (folder / name).symlink_to(found)


def _is_ours(path: str) -> bool:
    """The interpreter, in the checkout, in the Python environment, or made by a test."""
    homes = (ROOT, sys.prefix, tempfile.gettempdir(), "/proc")
    real = os.path.realpath(path)
    # Where Python is a package of the system, the folder of its installation holds all programs.
    return real == os.path.realpath(sys.executable) or any(
        real.startswith(f"{os.path.realpath(home)}/") for home in homes
    )


def restrict() -> None:
    """From now on this process and those below it find listed programs alone, and refuse others by their paths."""
    if sys.platform != "linux" or not shutil.which("dpkg-query"):
        return
    programs = [program for program in listed() if not program.endswith("/")]
    folders = tuple(program for program in listed() if program.endswith("/"))
    allowed = {*programs, *_essential(), *_compilers_of_python()}
    before = os.environ["PATH"]
    folder = Path(tempfile.mkdtemp(prefix="tilewright-programs-"))
    atexit.register(functools.partial(_remove, folder, os.getpid()))
    folder.chmod(0o755)  # some tests become another user
    _link(sorted(allowed), before, folder)
    os.environ["PATH"] = f"{Path(sys.prefix) / 'bin'}:{folder}"

    which = shutil.which

    def checked_which(name, *args, **options):
        # The product may look for what a user has; a test that does so would skip itself where it is missing.
        asks = sys._getframe(1).f_code.co_filename
        if asks.startswith(str(ROOT / "tests")) and os.path.basename(name) not in allowed:
            raise UnlistedProgramError(name)
        return which(name, *args, **options)

    shutil.which = checked_which

    def look(event: str, arguments: tuple) -> None:
        if event == "subprocess.Popen":
            program = os.fspath(arguments[0] if arguments[0] is not None else arguments[1][0])
        elif event in ("os.exec", "os.posix_spawn"):
            program = os.fspath(arguments[0])
        else:
            return
        program = os.fsdecode(program)
        if "/" not in program:
            if program not in allowed and not (Path(sys.prefix) / "bin" / program).exists():
                raise UnlistedProgramError(program)
        elif os.path.exists(program) and not (
            _is_ours(program) or program.startswith(folders) or os.path.basename(program) in allowed
        ):
            raise UnlistedProgramError(program)

    sys.addaudithook(look)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
