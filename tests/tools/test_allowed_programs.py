"""A test that reaches for a program which set-up does not install fails, also where somebody installed it."""

import os
import shutil
import subprocess
import sys

import pytest
from tests.allowed_programs import ROOT, UnlistedProgramError, listed, rows

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("dpkg-query"), reason="programs are told apart by Debian's packages"
)


def test_what_is_not_listed_is_not_found():
    # git is there wherever this repository was cloned.
    with pytest.raises(UnlistedProgramError, match=r"'git'.*requirements/packages\.txt"):
        subprocess.run(["git", "--version"], check=True)
    with pytest.raises(UnlistedProgramError, match="git"):
        shutil.which("git")
    with pytest.raises(UnlistedProgramError, match="git"):
        subprocess.run(["/usr/bin/git", "--version"], check=True)
    done = subprocess.run(["sh", "-c", "git --version"], capture_output=True, text=True, check=False)
    assert done.returncode == 127


def test_what_is_listed_is_there():
    missing = [name for name in listed() if not (os.path.isdir(name) if name.endswith("/") else shutil.which(name))]
    assert not missing


def test_set_up_installs_from_the_table():
    script = "source <(sed -n '/^packages_for/,/^}/p' scripts/setup); packages_for build; packages_for tests"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [package for package, needed, _ in rows() if needed in ("build", "tests")]
