"""Compiles kernels.c into a library as an export would, and loads it."""

import os
import subprocess
from pathlib import Path

import pytest

import tilewright as tw

PACKAGE = Path(tw.__file__).parent
SOURCE = Path(__file__).with_name("kernels.c")


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")

    def compile_with(name, *flags):
        library = folder / f"{name}.so"
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-std=c11", "-Wall", "-Wextra", "-Werror"]
        command += ["-Wno-unused-parameter", "-fvisibility=hidden", f"-I{PACKAGE / 'include'}", *flags, str(SOURCE)]
        command += [str(PACKAGE / "libtilewright_runtime.a"), "-lpthread", "-o", str(library)]
        subprocess.run(command, check=True)
        return library

    return compile_with


@pytest.fixture(scope="session")
def library_path(compile_library):
    return compile_library("kernels")


@pytest.fixture(scope="session")
def kernels(library_path):
    return tw.load(library_path)
