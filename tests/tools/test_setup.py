"""What a user sees whose machine lacks something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bare_machine(tmp_path: Path) -> dict[str, str]:
    """The environment of an ordinary user, without sudo rights, on a Debian that has no package of ours."""
    for name, script in {"dpkg-query": "exit 1", "id": "echo 1000", "sudo": "exit 1", "apt-get": "exit 99"}.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def copy_of_the_tree(target: Path) -> Path:
    for name in ("scripts", "requirements", "cmake"):
        shutil.copytree(ROOT / name, target / name)
    for name in ("CMakeLists.txt", "CMakePresets.json", "pyproject.toml"):
        shutil.copy(ROOT / name, target / name)
    return target


def test_setup_without_root_prints_the_apt_line(bare_machine, tmp_path):
    tree = copy_of_the_tree(tmp_path / "tree")
    done = subprocess.run(
        [tree / "scripts/setup"], env=bare_machine, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert "needs root or sudo" in done.stderr
    assert "apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build" in done.stderr
    assert "llvm-19-dev" in done.stderr
    assert not (tree / ".venv").exists()


def test_setup_refuses_a_python_that_is_too_old(bare_machine, tmp_path):
    tree = copy_of_the_tree(tmp_path / "tree")
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    environment = bare_machine | {"PYTHON": str(old)}
    done = subprocess.run(
        [tree / "scripts/setup"], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert f"PYTHON={old} is not a Python 3.11" in done.stderr


def test_setup_explains_unknown_options():
    done = subprocess.run([ROOT / "scripts/setup", "--fast"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown option --fast" in done.stderr


def configure(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", *options], capture_output=True, text=True
    )


def test_cmake_names_all_missing_packages_at_once(tmp_path):
    done = configure(tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_SQLite3=ON")
    assert done.returncode != 0
    assert "apt-get install -y --no-install-recommends libsqlite3-dev libfmt-dev" in " ".join(done.stderr.split())


def test_pip_install_without_llvm_prints_the_apt_line(tmp_path):
    """In an environment of the user's own pip only says what is missing: it installs no system packages."""
    options = {"cmake.define.CMAKE_DISABLE_FIND_PACKAGE_LLVM": "ON", "build-dir": tmp_path / "build"}
    command = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "-w", tmp_path]
    settings = [f"--config-settings={key}={value}" for key, value in options.items()]
    done = subprocess.run([*command, *settings], capture_output=True, text=True)
    assert done.returncode != 0
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    assert "apt-get update && apt-get install -y --no-install-recommends llvm-19-dev" in lines
    assert not list(tmp_path.glob("*.whl"))


def test_cmake_without_a_compiler_prints_the_apt_line(tmp_path):
    done = configure(
        tmp_path,
        f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}",
        "-DCMAKE_FIND_ROOT_PATH=/nowhere",
        "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY",
    )
    assert done.returncode != 0
    assert "--no-install-recommends g++ llvm-19-dev" in " ".join(done.stderr.split())
