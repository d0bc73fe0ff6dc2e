"""Lesson 13: share records in a team. Two people tune, a third one only compiles.

python examples/13_share_a_database.py [TRIALS]

A database is one file, which can be copied and kept under version control. `tilewright db` merges databases. Records
are found by the program itself, whatever its name or file, and apply to the same kind of processor only. Several
processes may write to one file, or to a server: `database="postgresql://user@host/name"`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def scores(Q: T.Buffer((64, 64), "float32"), K: T.Buffer((64, 64), "float32"), S: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + Q[vi, vk] * K[vj, vk]


@T.prim_func
def scaled(S: T.Buffer((64, 64), "float32"), P: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.exp(S[vi, vj] * T.float32(0.125))


def run(*arguments: object, cwd: Path) -> None:
    """Run a command as a user with a separate home folder."""
    words = [str(argument) for argument in arguments]
    print(f"\n{cwd.name}$ {' '.join(words)}")
    environment = os.environ | {"HOME": str(cwd), "XDG_CACHE_HOME": str(cwd / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, env=environment, check=True, capture_output=True, text=True
    )
    print(done.stdout, end="")


def use_them() -> None:
    """Compile the same programs from a file of records that came from elsewhere."""
    for program in (scores, scaled):
        kernel = tw.compile(program, database="team.db")
        print(f"{kernel.name}: {kernel.schedule}")


def main(trials: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        ada, grace, mary = (Path(place) / name for name in ("ada", "grace", "mary"))
        for folder in (ada, grace, mary):
            folder.mkdir()
        tw.tune(scores, trials=trials, database=ada / "records.db")
        tw.tune(scaled, trials=trials, database=grace / "records.db")

        # One user merges the records of the other; the best three of each program and target are kept.
        shutil.copy(ada / "records.db", grace / "from_ada.db")
        run("tilewright", "db", "team.db", "--merge", "records.db", "--merge", "from_ada.db", "--prune", 3, cwd=grace)
        run("tilewright", "db", "team.db", "--statistics", cwd=grace)

        # The third user has another folder, home and process, and measures nothing.
        shutil.copy(grace / "team.db", mary)
        shutil.copy(__file__, mary / "share.py")
        run("share", "use", cwd=mary)


if __name__ == "__main__":
    if sys.argv[1:] == ["use"]:
        use_them()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
