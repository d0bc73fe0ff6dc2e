"""The command line: tune, show, compile, db, info."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import ArgumentError, Error, ResourceError, ScriptError

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.search import Space, TuneResult

app = typer.Typer(
    help="Write a tensor program as Python-syntax text, schedule it by hand or by search, get a fast kernel.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ScriptFile = Annotated[Path, typer.Argument(metavar="FILE", help="A Python file with @T.prim_func programs.")]


def main() -> None:
    """Entry point of the command `tilewright`: errors become a message and a non-zero exit status."""
    try:
        app()
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def console() -> Console:
    """Where tables go; rich honors NO_COLOR and outputs that are no terminal by itself."""
    from rich.console import Console

    return Console(highlight=False)


def load_script(file: Path) -> ModuleType:
    """Runs the user's file as a module.

    Raises:
        tilewright.ScriptError: there is no such file, or running it raises; the message shows the user's own line.
    """
    if not file.is_file():
        raise ScriptError(f"{file}: no such file\n  hint: the path is relative to {Path.cwd()}")
    spec = importlib.util.spec_from_file_location(file.stem if file.stem.isidentifier() else "script", file)
    if spec is None or spec.loader is None:
        raise ScriptError(f"{file}: not a Python file\n  hint: its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except SyntaxError as error:
        mark = " " * ((error.offset or 1) - 1) + "^"
        raise ScriptError(
            f"{error.msg}\n --> {file}:{error.lineno}:{error.offset}\n{(error.text or '').rstrip()}\n{mark}"
        ) from None
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file] or [None]
        where = "" if frames[-1] is None else f"\n --> {file}:{frames[-1].lineno}\n{frames[-1].line}"
        raise ScriptError(f"the script raised {type(error).__name__}: {error}{where}") from error
    finally:
        sys.path.pop(0)
    return module


def programs_of(script: ModuleType) -> dict[str, Any]:
    """The programs that a script defines, by name, in the order of their definition."""
    from tilewright import ir

    return {
        name: value
        for name, value in vars(script).items()
        if isinstance(value, (ir.PrimFunc, ir.Module)) and not name.startswith("_")
    }


def select_program(script: ModuleType, file: Path, name: str | None) -> tuple[str, Any]:
    """The program called `name`, or the only one there is."""
    programs = programs_of(script)
    if not programs:
        raise ScriptError(f"{file} defines no program\n  hint: a program is a function under @T.prim_func")
    if name is None and len(programs) == 1:
        return next(iter(programs.items()))
    if name not in programs:
        raise ArgumentError(
            f"{file} has the programs {', '.join(programs)}"
            + (f", none is called {name}" if name else "")
            + "\n  hint: choose one with --program"
        )
    return name, programs[name]


def spaces_of_file(file: Path, only: str | None) -> list[tuple[str, Space]]:
    """The spaces of a script with the names of their programs."""
    from tilewright.search.space import spaces_of

    script = load_script(file)
    spaces = [s for s in spaces_of(vars(script)) if only is None or s.name == only]
    if not spaces:
        what = "no space of schedules" if only is None else f"no space called {only}"
        raise ScriptError(f"{file} defines {what}\n  hint: @tw.space(program) over a function that takes a schedule")
    programs = programs_of(script)
    named = []
    for space in spaces:
        name = next((n for n, p in programs.items() if p is space.program), space.name)
        named.append((name, space))
    return named


@app.command()
def tune(
    file: ScriptFile,
    trials: Annotated[int, typer.Option(help="Candidates to measure.")] = 64,
    seconds: Annotated[float | None, typer.Option(help="Stop after so much wall time.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same candidates.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads to tune for.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the database and the kernels.")] = Path("out"),
    database: Annotated[Path | None, typer.Option(help="File of records [default: OUT/tilewright.db]")] = None,
    space: Annotated[str | None, typer.Option(help="Only the space of this name.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what was measured before.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Search every space of FILE for the fastest kernel; show, store and export what was found."""
    from tilewright.search import session

    records = database or out / "tilewright.db"
    # Writing nothing is found out before an hour of tuning, not after it.
    prepare_folder(out)
    interrupted = False
    for name, chosen in spaces_of_file(file, space):
        result = session.tune(
            chosen,
            trials=trials,
            seconds=seconds,
            seed=seed,
            threads=threads,
            database=records,
            fresh=fresh,
            progress=None if quiet else "json" if as_json else "auto",
        )
        interrupted |= result.stop_reason == "canceled"
        show_result(name, chosen, result, file=file, out=out, records=records, quiet=quiet, as_json=as_json)
    if interrupted:
        raise typer.Exit(130)


def prepare_folder(folder: Path) -> None:
    """Makes the folder and checks that files can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".tilewright-write-test"
        probe.write_text("x")
        probe.unlink()
    except OSError as error:
        raise ResourceError(
            f"{folder}: nothing can be written there: {error.strerror}\n  hint: choose another folder with --out"
        ) from None


def show_result(
    name: str, space: Space, result: TuneResult, *, file: Path, out: Path, records: Path, quiet: bool, as_json: bool
) -> None:
    """The table, the best schedule, and what was written."""
    from tilewright.search import report

    if result.record is None and result.stop_reason == "canceled":
        print("interrupted before a candidate was measured; run the same command again to go on", file=sys.stderr)
        return
    written = report.export(result, out, name)
    cores = os.cpu_count() or 1
    counts = [1] if cores == 1 else [1, len(os.sched_getaffinity(0))]
    if quiet:
        return
    tables = {threads: report.measure_rows(result, space, threads) for threads in dict.fromkeys(counts)}
    warning = report.check_peer(result, space)
    schedule = report.runnable_schedule(result, name)
    paths = [str(records), *map(str, written)]
    if as_json:
        rows = [row for threads in tables for row in report.rows_as_json(tables[threads])]
        best = result.record
        event = {
            "event": "result",
            "program": name,
            "stop_reason": result.stop_reason,
            "trials": result.progress.trials,
            "best_seconds": None if best is None else best.median,
            "rows": rows,
            "schedule": schedule,
            "written": paths,
        }
        print(json.dumps(event))
        return
    screen = console()
    for threads, rows in tables.items():
        screen.print(report.table(rows, f"{name}, {threads} thread{'s' if threads > 1 else ''}"))
    if warning:
        screen.print(f"warning: {warning}")
    screen.print("\nThe best schedule; paste it under the script to get the same program:\n")
    print(schedule)
    if result.verdict is not None:
        screen.print(result.verdict.note)
    if result.record is not None:
        print(f"results checked: {json.dumps(result.record.verification)}")
    screen.print("written: " + ", ".join(paths))
    total, stopped = result.progress.total, result.stop_reason
    if stopped == "canceled":
        screen.print(f"interrupted after {result.progress.trials} of {total} trials; the same command goes on")
    elif result.progress.earlier >= total:
        screen.print(
            f"all {total} trials were measured before: nothing was measured again. "
            f"More: tilewright tune {file} --trials {2 * total}; from the start: --fresh"
        )
    elif stopped == "exhausted":
        screen.print(f"the space has no more than {result.progress.trials} different programs")


@app.command()
def show(
    file: ScriptFile,
    program: Annotated[str | None, typer.Option(help="Name of the program.")] = None,
    after: Annotated[str | None, typer.Option(help="After this lowering pass (a wrong name lists them).")] = None,
    record: Annotated[str | None, typer.Option(help="'best': with the best recorded schedule.")] = None,
    database: Annotated[Path, typer.Option(help="File of records.")] = Path("out/tilewright.db"),
    asm: Annotated[bool, typer.Option("--asm", help="Assembly.")] = False,
    llvm: Annotated[bool, typer.Option("--llvm", help="LLVM IR.")] = False,
) -> None:
    """Print a program of FILE: as written, scheduled, lowered, or compiled."""
    from tilewright import kernel as kernels

    name, chosen = select_program(load_script(file), file, program)
    if record is not None:
        if record != "best":
            raise ArgumentError(f"--record {record}: only 'best' is known")
        chosen = kernels.best_schedule(chosen, database).mod
    if asm or llvm:
        print(kernels.compile(chosen).inspect("asm" if asm else "llvm"))
    elif after is not None:
        print(kernels.lower(chosen, after=after).script())
    else:
        print_program(chosen.script())


def print_program(text: str) -> None:
    """Colored in a terminal, plain text elsewhere."""
    screen = console()
    if screen.is_terminal:
        from rich.syntax import Syntax

        screen.print(Syntax(text, "python", background_color="default"))
    else:
        print(text)


@app.command("compile")
def compile_command(
    file: ScriptFile,
    program: Annotated[str | None, typer.Option(help="Name of the program.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the library, the object and the header.")] = Path("out"),
    database: Annotated[Path | None, typer.Option(help="Use the best schedule recorded here.")] = None,
    target: Annotated[str, typer.Option(help="'native', or such as 'llvm -mcpu=skylake-avx512'.")] = "native",
) -> None:
    """Compile a program of FILE into a shared library with a C header, without tuning."""
    from tilewright import kernel as kernels

    name, chosen = select_program(load_script(file), file, program)
    prepare_folder(out)
    kernel = kernels.compile(chosen, target=target, database=database)
    for path in kernel.export(out, name=name):
        print(path)


@app.command()
def db(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A database of records.")],
    top: Annotated[int, typer.Option(help="Records to show of each program.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="All records, one JSON object a line.")] = False,
) -> None:
    """Show what a database holds."""
    from rich.table import Table

    from tilewright import _core
    from tilewright.timing import format_seconds

    if not file.exists():
        raise ResourceError(f"{file}: no such file\n  hint: `tilewright tune` makes out/tilewright.db")
    store = _core.Database.open(str(file), read_only=True)
    if as_json:
        for line in store.export_lines():
            print(line)
        return
    for workload in store.workloads():
        title = f"{workload['name']}  {workload['hash'][:12]}  first seen {workload['created']}"
        listing = Table(title=title, title_justify="left")
        for column in ("time", "target", "seed", "candidate", "measured"):
            listing.add_column(column)
        for entry in store.top_k(workload["hash"], "", top):
            cells = (entry["target"], str(entry["seed"]), str(entry["index"]), entry["created"])
            listing.add_row(format_seconds(entry["median"]), *cells)
        console().print(listing)
        counts = store.count_outcomes(workload["hash"], "")
        print("outcomes: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items())) + "\n")


@app.command()
def info() -> None:
    """Versions, the processor, and the measured limits of this machine."""
    from rich.table import Table

    from tilewright import _core, machine

    print(f"tilewright {_core.version()}, LLVM {_core.llvm_version()}, Python {sys.version.split()[0]}")
    host = _core.host_target()
    print(f"processor: {host['cpu']}, {host['cores']} cores, {host['vector_bits']}-bit vectors")
    print(f"features: {' '.join(host['features'])}")
    for threads in dict.fromkeys([1, len(os.sched_getaffinity(0))]):
        roofs = machine.roofs(threads)
        listing = Table(title=f"measured limits, {threads} thread{'s' if threads > 1 else ''}", title_justify="left")
        listing.add_column("limit")
        listing.add_column("rate", justify="right")
        for dtype, rate in roofs.peaks.items():
            listing.add_row(f"{dtype} arithmetic", f"{rate / 1e9:.0f} GFLOP/s")
        for level in roofs.levels:
            size = f" ({level.capacity >> 10} KiB)" if level.capacity else ""
            listing.add_row(f"reading {level.name}{size}", f"{level.bandwidth / 1e9:.0f} GB/s")
        console().print(listing)


if __name__ == "__main__":
    main()
