"""The command line: tune, worker, show, compile, db, report, info."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tilewright.cli.user_script import NamedSpace, load_script, programs_together, select_program, spaces_of_script
from tilewright.database.postgres_store import without_password
from tilewright.errors import ArgumentError, Error, ResourceError
from tilewright.support import early_interrupts
from tilewright.support.notes import PerformanceWarning, ReferenceWarning
from tilewright.support.user_lines import with_place

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.search import FormatsResult, Space, TuneResult

INTERRUPTED = 130
#: width of tables that are not printed to a terminal, so that they are not wrapped
WIDTH_OF_FILES = 160


#: default output of `tilewright tune`: the folder, and the name of the database in it
OUT, DATABASE_NAME = Path("out"), "tilewright.db"
RECORDS = str(OUT / DATABASE_NAME)

#: descriptions of why a search ended before its number of trials
ENDS = {
    "patience": "as many trials as --patience says found nothing faster",
    "target": "a candidate is as fast as --target-seconds says",
    "roofline": "the best is within 3 % of what this machine allows",
}


class Commands(TyperGroup):
    """Report errors as a message and a non-zero exit status, without a traceback of Tilewright."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        early_interrupts.end()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # programs hold letters that the encoding of a locale may lack
                stream.reconfigure(errors="backslashreplace")
        try:
            with early_interrupts.recognized(), warnings.catch_warnings():
                shown = warnings.showwarning
                warnings.showwarning = lambda text, kind, *place: (
                    print(f"warning: {text}", file=sys.stderr)
                    if issubclass(kind, PerformanceWarning)
                    else shown(text, kind, *place)
                )
                answer = super().invoke(ctx)
            sys.stdout.flush()  # reports a full disk here
            return answer
        except Error as error:
            print(f"error: {with_place(error)}", file=sys.stderr)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader closed the pipe
            raise
        except OSError as error:
            what = f"{error.filename}: " if error.filename else ""
            print(f"error: {what}{error.strerror or error}", file=sys.stderr)
            # Keeps Python from flushing the rest to the closed pipe at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(1) from None
        except Exception as error:
            if type(error).__module__.startswith("typer.") or os.environ.get("TILEWRIGHT_TRACEBACK"):
                raise
            print(
                f"error: a defect of Tilewright: {type(error).__name__}: {error}\n"
                "  hint: please report it, with the output of the same command under TILEWRIGHT_TRACEBACK=1",
                file=sys.stderr,
            )
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=Commands,
    help="Write a tensor program as Python-syntax text, schedule it manually or by search, get a fast kernel.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ScriptFile = Annotated[Path, typer.Argument(metavar="FILE", help="A Python file with @T.prim_func programs.")]
ProgramName = Annotated[str | None, typer.Option(help="Name of the program, where FILE has several.")]
Patience = Annotated[int | None, typer.Option(help="Stop after so many trials without a faster candidate.")]
Seconds = Annotated[
    float | None,
    typer.Option(help="Search for so much wall time, all programs together; what is found is compared after it."),
]
TargetSeconds = Annotated[float | None, typer.Option(help="Stop at a candidate that is so fast.")]
MachineTarget = Annotated[
    str,
    typer.Option(
        help="'native', or such as 'llvm -mcpu=haswell', which this machine, or a worker of --cluster, has to run."
    ),
]
Strategy = Annotated[
    str,
    typer.Option(
        help="Which candidates are measured: guided, draft-and-verify, descent, evolutionary, replay-trace, "
        "replay-func."
    ),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(help="Build and measure on the workers of this Dask scheduler.", metavar="tcp://HOST:PORT"),
]
CostModelName = Annotated[
    str, typer.Option(help="What ranks drafts: none (the estimate), xgb, residual, mlp, analytical, random.")
]


def console() -> Console:
    """Return the console for tables; rich honors NO_COLOR and non-terminal outputs by itself."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def parse_sizes(texts: list[str]) -> dict[str, float]:
    """Parse "n=1000" or "n=1000,alpha=1.5": numbers by name, or by the label of one of several sizes of a name
    ("n#0.1")."""
    sizes: dict[str, float] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, _, value = part.partition("=")
        try:
            sizes[name] = int(value) if value.lstrip("-").isdecimal() else float(value)
        except ValueError:
            name = ""
        of_name, *places = name.split("#")
        if not of_name.isidentifier() or not all(re.fullmatch(r"\d+(\.\d+)?", place) for place in places):
            raise ArgumentError.of(
                "command/sizes", f"--sizes {part}: a size has a name and a number", "such as --sizes n=1000,m=20"
            )
    return sizes


def sizes_for(spaces: list[NamedSpace], sizes: dict[str, float]) -> dict[str, dict[str, float]]:
    """Return for each space, by name, the sizes that its program has."""
    from tilewright.support import limits
    from tilewright.task.task import open_sizes_of

    known = {each.name: open_sizes_of(each.space.program) for each in spaces}
    for name in sizes:
        if not any(name in of for of in known.values()):
            everything = dict.fromkeys(size for of in known.values() for size in of)
            if not everything:
                raise ArgumentError.of("command/sizes", f"--sizes {name}: no program leaves a size open")
            raise ArgumentError.of(
                "command/sizes", f"--sizes {name}: no program has such a size", limits.closest(name, everything)
            )
    return {each: {name: size for name, size in sizes.items() if name in of} for each, of in known.items()}


def need_sizes(each: NamedSpace, given: dict[str, float]) -> None:
    """Check that each symbolic size of a program has a value.

    Raises:
        tilewright.ArgumentError: a size has no value.
    """
    from tilewright.task.task import open_sizes_of, sizes_of

    known = {**sizes_of(each.space.program, each.space.inputs), **given}
    usual = open_sizes_of(each.space.program)
    missing = [name for name in usual if name not in known]
    if missing:
        raise ArgumentError.of(
            "tune/symbolic-shape",
            f"'{each.name}' leaves {', '.join(missing)} open, and no usual values are known",
            "say it with --sizes " + ",".join(f"{name}={usual[name]}" for name in missing),
        )


def check_numbers(
    trials: int, threads: int, seed: int, patience: int | None, seconds: float | None, target_seconds: float | None
) -> None:
    """Refuse numbers that no search can have, naming their options."""
    from tilewright.support import limits

    limits.whole("--trials", trials, 1, "at least 1 candidate has to be measured")
    limits.whole("--threads", threads, 1, "a kernel needs at least 1")
    limits.whole("--seed", seed, 0)
    if patience is not None:
        limits.whole("--patience", patience, 1)
    limits.positive("--seconds", seconds, "omitted")
    limits.positive("--target-seconds", target_seconds, "omitted")


def command_for(context: typer.Context, **changed: Any) -> str:
    """Return the running command with some options changed, which come first. None or False omits an option; options
    with default values are omitted."""
    words = ["tilewright", str(context.info_name), str(context.params["file"])]
    for option in sorted(context.command.params, key=lambda each: each.name not in changed):
        name = str(option.name)
        value = changed.get(name, context.params[name])
        if name == "file" or value is None or value is False or (name not in changed and value == option.default):
            continue
        words += [option.opts[0], *([] if value is True else [str(value)])]
    return shlex.join(words)


@app.command()
def tune(
    context: typer.Context,
    file: ScriptFile,
    program: Annotated[str | None, typer.Option(help="Only the program of this name.")] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            help="What programs that leave sizes open, or take scalars, are tuned for, such as n=1000,m=20.",
            metavar="NAME=N",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Candidates to measure.")] = 64,
    seconds: Seconds = None,
    patience: Patience = None,
    target_seconds: TargetSeconds = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same candidates.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads to tune for.")] = 1,
    target: MachineTarget = "native",
    strategy: Strategy = "guided",
    cost_model: CostModelName = "none",
    cold: Annotated[bool, typer.Option("--cold", help="Calls before which the caches hold other data.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the database and the kernels.")] = OUT,
    database: Annotated[
        str | None, typer.Option(help=f"File of records, or postgresql://...; default: {DATABASE_NAME} in --out.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="Only the space of this name.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what was measured before.")] = False,
    cluster: ClusterAddress = None,
    batch: Annotated[int | None, typer.Option(help="Candidates to sample at a time.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Search every space of FILE for the fastest kernel; show, store and export what was found.

    A program of FILE without a space gets the heuristic one; of a module of several functions, each of them. What a
    search knows of a program is kept in the database, so the same command continues where it stopped.
    """
    from tilewright import _core
    from tilewright.search import FormatsResult, TuneResult, session
    from tilewright.search.budget import share_of
    from tilewright.search.spaces import space_for_cpu
    from tilewright.task.task import open_sizes_of

    check_numbers(trials, threads, seed, patience, seconds, target_seconds)
    _core.SearchStrategy.create(strategy)
    wanted = _core.Target(target).with_num_cores(threads)
    given = parse_sizes(given_sizes := sizes or [])
    asked = {
        **{"trials": trials, "seed": seed, "threads": threads, "target": target, "cold": cold, "fresh": fresh},
        **{"strategy": strategy, "cost_model": session.cost_model_called(cost_model, seed)},
        **{"patience": patience, "target_seconds": target_seconds, "cluster": cluster, "batch": batch},
    }
    shown = {"database": without_password(database) if database else None, "sizes": ",".join(given_sizes) or None}
    more = command_for(context, **shown, trials=2 * trials, fresh=None, quiet=None, as_json=None)

    def heuristic_space(found: Any) -> Space:
        return space_for_cpu(found, wanted, {name: given[name] for name in open_sizes_of(found) if name in given})

    chosen = spaces_of_script(load_script(file), file, space, program, heuristic_space)
    sizes_of = sizes_for(chosen, given)
    # Report unusable outputs before an hour of tuning, not after it.
    prepare_folder(out)
    failed = Failures(len(chosen))
    ready = ready_ones(chosen, sizes_of, failed)
    records = database or str(out / DATABASE_NAME)
    kept_in = without_password(records)

    def search(each: NamedSpace, seconds: float | None) -> None:
        shown = None if quiet else "json" if as_json else "auto"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReferenceWarning)  # printed below the table
            own = {"seconds": seconds, "sizes": sizes_of[each.name], "database": records, "progress": shown}
            result = session.tune(each.space, **asked, **own)  # type: ignore[arg-type]
        assert isinstance(result, TuneResult | FormatsResult)  # the program is a single function
        if result.stop_reason == "canceled":
            say_interrupted(result, kept_in)
            raise typer.Exit(INTERRUPTED)
        written = [kept_in, *(str(path) for path in result.kernel.export(out, name=each.name) if path)]
        report_result(each, result, records, written, None if quiet else more, as_json=as_json)

    try:
        started = time.monotonic()  # importing the user's file is not part of the search
        for number, each in enumerate(ready):
            with failed.kept(each):
                search(each, share_of(seconds, time.monotonic() - started, len(ready), number))
    except KeyboardInterrupt:
        print_interrupted("", f"what was measured is kept in {kept_in}")
        raise typer.Exit(INTERRUPTED) from None
    if failed.count:
        raise typer.Exit(1)


def report_formats(each: NamedSpace, result: FormatsResult, written: list[str], *, as_json: bool) -> None:
    """Print the results for the formats that a space samples."""
    if as_json:
        formats = {str(choice): None if choice.failure else choice.seconds for choice in result.choices}
        print(json.dumps({"name": each.name, "formats": formats, "written": written}))
    else:
        print(f"{result.table()}\nwritten: {', '.join(written)}")


def report_result(
    each: NamedSpace,
    result: TuneResult | FormatsResult,
    records: str,
    written: list[str],
    more: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the result of a search and a comparison with its baselines; for a kernel of another processor, its speed
    there.

    Args:
        more: the command that continues with more trials; None to print none.
    """
    from tilewright.search import FormatsResult, report
    from tilewright.timing import format_seconds

    if isinstance(result, FormatsResult):
        if as_json or more is not None:
            report_formats(each, result, written, as_json=as_json)
        return
    if not result.runs_here:
        best = result.best_record()
        if as_json:
            print(json.dumps({"name": each.name, "target": best.target, "seconds": best.median, "written": written}))
        elif more is not None:
            elsewhere = "" if result.hosts is None else ", which is another processor than this"
            print(f"{each.name}: {format_seconds(best.median)} on {best.target}{elsewhere}")
            print(f"written: {', '.join(written)}" + ("" if result.hosts is None else f"\n\n{result.hosts}"))
        return
    summary = report.summarize(result, each.space, each.program, records)
    if as_json:
        print(json.dumps(summary.as_json() | {"written": written}))
    elif more is not None:
        show_summary(each, summary, written, more=more)


@app.command()
def worker(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Of the scheduler, such as tcp://head:8786.")],
    measure: Annotated[
        int | None,
        typer.Option(help="Kernels to measure at a time; default: 1 for the first worker of a host, 0 for others."),
    ] = None,
    build: Annotated[
        int | None, typer.Option(help="Builds at a time; default: one for each processor that is left, at most 4.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the cluster calls this worker.")] = None,
) -> None:
    """Build and measure for the searches of a Dask cluster, until Ctrl-C."""
    from tilewright.cluster import worker as workers
    from tilewright.support import limits

    for option, number in (("--measure", measure), ("--build", build)):
        if number is not None:
            limits.whole(option, number, 0)
    workers.run(address, measure, build, name)


def ready_ones(chosen: list[NamedSpace], sizes_of: dict[str, dict[str, float]], failed: Failures) -> list[NamedSpace]:
    """Return the spaces that can be searched: each size has a value, and the peer can be called."""
    from tilewright.search import report

    ready = []
    for each in chosen:
        with failed.kept(each):
            need_sizes(each, sizes_of[each.name])
            report.try_peer(each.space, sizes_of[each.name])
            ready.append(each)
    return ready


class Failures:
    """Report errors of one of several spaces and continue with the others."""

    def __init__(self, spaces: int) -> None:
        self.spaces, self.count = spaces, 0

    @contextlib.contextmanager
    def kept(self, each: NamedSpace) -> Iterator[None]:
        """Catch an error inside the context if there are other spaces; otherwise let it end the command."""
        try:
            yield
        except Error as error:
            if self.spaces == 1:
                raise
            self.count += 1
            print(f"error: space '{each.name}': {with_place(error)}", file=sys.stderr)


def prepare_folder(folder: Path, option: str = "--out") -> None:
    """Make a folder and check that files can be written to it.

    Args:
        folder: folder that will be written to.
        option: command-line option that names the folder.

    Raises:
        tilewright.ResourceError: the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".tilewright-write-test"
        try:
            probe.write_text("x")
        finally:  # on a full disk, the empty file was created nevertheless
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise ResourceError.of(
            "command/folder",
            f"{folder}: nothing can be written there: {error.strerror}",
            f"choose another folder with {option}",
        ) from None


def say_interrupted(result: TuneResult | FormatsResult, records: str) -> None:
    """Print, after Ctrl-C, what was stored and how to continue."""
    from tilewright.search import FormatsResult
    from tilewright.timing import format_seconds

    if isinstance(result, FormatsResult):
        return print_interrupted("", f"what was measured is kept in {records}")
    progress, nothing = result.progress, f"what {records} holds is as it was"
    if progress.phase == "preparing":
        return print_interrupted(" before the search began", nothing)
    if progress.trials == 0:
        return print_interrupted(f" before the first of {progress.total} trials", nothing)
    best = "" if result.record is None else f", the best takes {format_seconds(result.record.median)}"
    when = f" after {progress.trials} of {progress.total} trials{best}"
    return print_interrupted(when, f"they are kept in {records}")


def print_interrupted(when: str, kept: str) -> None:
    """Print when a search was interrupted, and what is stored of it."""
    print(f"interrupted{when}; {kept}, and the same command continues", file=sys.stderr)


def show_summary(each: NamedSpace, summary: Any, written: list[str], more: str) -> None:
    """Print the table, the best schedule, and the written files."""
    from tilewright.search.progress import refusals
    from tilewright.search.spaces import BY_RULES

    screen = console()
    for table in summary.tables(each.name):
        screen.print(table)
    for remark in summary.remarks:
        print(remark)
    # Print sentences and code without rich: it would wrap them, and a wrapped command cannot be copied.
    for note in summary.result.kernel.notes:
        print(f"note: {note}")
    if summary.warning:
        print(f"warning: {summary.warning}")
    print("\nThe best schedule; paste it under the script to get the same program:\n")
    print_program(summary.schedule)
    for line in (*summary.checks, *refusals(summary.result.progress)):
        print(line)
    print("written: " + ", ".join(written))
    if summary.result.hosts is not None:
        print(f"\n{summary.result.hosts}")
    progress = summary.result.progress
    if summary.result.stop_reason == "seconds":
        print(f"the time was over after {progress.trials} of {progress.total} trials; the same command continues")
    elif summary.result.stop_reason == "exhausted":
        if progress.trials > 1:
            print(f"the space holds no more than these {progress.trials} programs")
        else:
            how = "a space of your own is a function under @tw.space"
            if each.space.name != BY_RULES:
                how = "decisions are sampled by sch.sample_perfect_tile, sch.sample_categorical, ..."
            print(f"the space holds this one program, so there was nothing to search: {how}")
    elif (reason := summary.result.stop_reason) in ENDS:
        print(f"{ENDS[reason]}: it ended after {progress.trials} of {progress.total} trials")
    elif progress.earlier >= progress.total:
        print(f"all {progress.total} trials were measured before, so nothing was measured")
        print(f"more trials: {more}; the same ones anew: --fresh")


@app.command()
def show(
    file: ScriptFile,
    program: ProgramName = None,
    after: Annotated[str | None, typer.Option(help="After this lowering pass (a wrong name lists them).")] = None,
    source: Annotated[bool, typer.Option("--source", help="As FILE has it, without a recorded schedule.")] = False,
    record: Annotated[str | None, typer.Option(help="'best': fail where no schedule is recorded.")] = None,
    database: Annotated[
        str | None,
        typer.Option(help=f"File of records, or postgresql://...; {RECORDS} by default, where it exists."),
    ] = None,
    asm: Annotated[bool, typer.Option("--asm", help="Assembly.")] = False,
    llvm: Annotated[bool, typer.Option("--llvm", help="LLVM IR.")] = False,
) -> None:
    """Print a program of FILE with its fastest recorded schedule, or as FILE has it where none is recorded."""
    from tilewright.kernel import kernel as kernels

    if (after is not None) + asm + llvm > 1:
        raise ArgumentError.of("command/options", "--after, --llvm and --asm exclude one another", "choose one")
    if record not in (None, "best"):
        raise ArgumentError.of("command/options", f"--record {record}: there is only --record best")
    if source and (record or database):
        raise ArgumentError.of("command/options", "--source excludes --record and --database", "choose one")
    _, chosen = select_program(load_script(file), file, program)
    needed = record is not None or database is not None
    best = None if source else best_on_record(chosen, database or RECORDS, needed=needed)
    chosen = chosen if best is None else best
    if asm or llvm:
        kernel = next(iter(kernels.kernels_of(kernels.compile_quietly(chosen))))
        print(kernel.inspect("asm" if asm else "llvm"))
        notes = kernel.notes
    else:
        print_program(chosen.script() if after is None else kernels.lower(chosen, after=after).script())
        notes = kernels.notes_on(chosen)
    comment = ";" if llvm else "#"
    for note in notes:
        print(f"{comment} note: {note}")
    if best is not None:
        print(f"{comment} with the fastest schedule of {without_password(database or RECORDS)}; --source omits it")


def best_on_record(program: Any, database: str, *, needed: bool) -> Any:
    """Return a program with its fastest recorded schedule; None if there is no record and `needed` is False.

    Raises:
        tilewright.ResourceError: `needed` is True, and the database has no record or cannot be read.
    """
    from tilewright.database.records import best_of_functions, best_schedule
    from tilewright.task.task import only_function

    if not needed and not Path(database).exists():
        return None
    try:
        if len(getattr(program, "functions", ())) > 1:
            return best_of_functions(program, database)[0]
        module = best_schedule(program, database).mod
        only = None if hasattr(program, "functions") else only_function(module)
        return only[1] if only else module
    except ResourceError as error:
        if needed:
            raise
        why = (error.message or str(error)).partition("\n")[0]
        print(f"note: this is the program without a recorded schedule: {why}", file=sys.stderr)
        return None


def print_program(text: str) -> None:
    """Print a program, colored in a terminal, as plain text elsewhere."""
    screen = console()
    if screen.is_terminal and not screen.no_color:
        from rich.syntax import Syntax

        # Lines are not wrapped, so that a program copied from the terminal is valid.
        screen.print(Syntax(text, "python", theme="ansi_dark", background_color="default"), soft_wrap=True)
    else:
        print(text)


@app.command("compile")
def compile_command(
    file: ScriptFile,
    program: Annotated[
        list[str] | None,
        typer.Option(help="Name of the program, where FILE has several; more than once: all in one library."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All programs of FILE, as one library.")] = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the files; that of the program, or of FILE, by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the library, the object and the header.")] = OUT,
    database: Annotated[
        str | None, typer.Option(help="Use the best schedule recorded in this file, or postgresql://...")
    ] = None,
    target: Annotated[str, typer.Option(help="'native', or such as 'llvm -mcpu=skylake-avx512', 'cuda'.")] = "native",
) -> None:
    """Compile programs of FILE into a shared library with a C header, without tuning."""
    from tilewright.kernel import kernel as kernels

    if every and program:
        raise ArgumentError.of("command/options", "--all and --program exclude one another", "choose one")
    script = load_script(file)
    names = list(dict.fromkeys(select_program(script, file, each)[0] for each in program or []))
    if every or len(names) > 1:
        own, chosen = file.stem, programs_together(script, file, names or None)
    else:
        own, chosen = select_program(script, file, names[0] if names else None)
    prepare_folder(out)
    kernel = kernels.compile(chosen, target=target, database=database)
    for path in kernel.export(out, name=own if name is None else name):
        print(path)


@app.command()
def db(
    file: Annotated[str, typer.Argument(metavar="DB", help="A file of records, or postgresql://...")],
    top: Annotated[int, typer.Option(help="Records to show of each program and target.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="All records, one JSON object a line.")] = False,
    statistics: Annotated[bool, typer.Option("--statistics", help="How much it holds, instead of what.")] = False,
    merge: Annotated[
        list[str] | None, typer.Option(help="Add what this database has and DB has not.", metavar="OTHER")
    ] = None,
    prune: Annotated[
        int | None, typer.Option(help="Forget all but so many records of each program and target, the best.", min=1)
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--export", help="Write the two files of a JSON database to this folder.")
    ] = None,
    read: Annotated[
        Path | None, typer.Option("--import", help="Add what the two files of a JSON database in this folder have.")
    ] = None,
    forget_damaged: Annotated[
        bool, typer.Option("--forget-damaged", help="Forget the records that cannot be read any more.")
    ] = False,
) -> None:
    """Show what a database holds; put databases together, prune, export and import them."""
    from tilewright.database import record_lines, records, upkeep
    from tilewright.database.damage import check_intact
    from tilewright.database.postgres_store import is_server

    if statistics and as_json:
        raise ArgumentError.of("command/options", "--statistics and --json exclude one another", "choose one")
    say = functools.partial(print, file=sys.stderr) if as_json else print  # standard output is records alone
    if merge or prune or read or forget_damaged:
        if not is_server(file) and not merge and not read:
            records.read_database(file)  # pruning must not create a database
        upkeep.merge_and_prune(file, merge or [], read, prune, forget_damaged=forget_damaged, say=say)
    store = records.read_database(file)
    check_intact(file)
    if write:
        prepare_folder(write, "--export")
        programs, count = record_lines.write_lines(store, write)
        say(f"{count} records of {programs} programs written to {write}")
    if statistics:
        show_table(upkeep.statistics(store))
    elif as_json:
        for entry in upkeep.entries(store):
            print(json.dumps(entry))
    elif not (merge or prune or read or write or forget_damaged):
        if not store.workloads():
            print(f"{store.path} holds no records")
        for title, listing, remark in upkeep.listings(store, top):
            print(title)
            if listing.rows:
                show_table(listing, titled=False)
            print(f"{remark}\n")


def show_table(table: Any, *, titled: bool = True) -> None:
    """Print a table to the terminal."""
    from rich.table import Table
    from rich.text import Text

    if titled:
        print(f"\n{table.title}")  # printed separately, since rich would wrap it to the width of the table
    listing = Table()
    for number, column in enumerate(table.columns):
        listing.add_column(Text(column), justify="left" if number == 0 else "right", overflow="fold")
    for row in table.rows:
        listing.add_row(*map(Text, row))  # not as str: rich takes the brackets of "C[i, j]" for markup
    console().print(listing)


@app.command()
def report(
    file: Annotated[str, typer.Argument(metavar="DB", help="A file of records, or postgresql://...")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page to write; default: beside the file, as NAME.html; - prints it."),
    ] = None,
    top: Annotated[int, typer.Option(help="Schedules to show of each program and target.", min=1)] = 3,
) -> None:
    """Write a report on a database as one page of HTML: how the best time fell, how it compares with the
    unscheduled program and its heuristic schedule, what failed, how far the best is from the machine's limits, the
    best schedules with their programs and assembly, and where the time went. The tables are printed, too. Of a server
    nothing is written without --out."""
    from tilewright.database.postgres_store import is_server
    from tilewright.report.database_report import EMPTY, report_on
    from tilewright.report.page import page

    found = report_on(file, top=top)
    if str(out) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(f"{page(found)}\n".encode())  # as the page declares, whatever the locale
        return
    if out is None and not is_server(file):
        # The folders "." and ".." have names of their own.
        out = (Path(file) if Path(file).name not in ("", "..") else Path(file).resolve()).with_suffix(".html")
    if out is not None and out.exists() and not is_server(file) and out.samefile(file):
        hint = "choose another place with --out"
        raise ArgumentError.of("report/cannot-write", f"{out} is the database: the page would replace it", hint)
    try:
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(page(found), encoding="utf-8")
    except OSError as error:
        raise ResourceError.of(
            "report/cannot-write", f"{out}: cannot be written: {error.strerror}", "choose another place with --out"
        ) from None
    for table in found.tables():
        show_table(table)
    print("\ntargets in full" if found.tasks else EMPTY)
    for target, name in found.short_targets.items():
        print(f"{name}: {target}")
    for task in found.tasks:
        print(f"\n{found.title(task)}, {found.short_targets[task.target]}: program {task.hash[:12]}, {task.facts}")
        if task.remark:
            print(f"note: {found.title(task)}: {task.remark}")
        if task.advice:
            print(f"note: {found.title(task)}: {task.advice}")
    print(
        f"written: {out}; it shows the best schedules, their programs and assembly, too"
        if out is not None
        else "no page is written: say where with --out report.html"
    )


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; of flags, a list.")] = False,
    cflags: Annotated[bool, typer.Option("--cflags", help="Only the flags that find the C headers.")] = False,
    libs: Annotated[bool, typer.Option("--libs", help="Only the flags to link exported objects with.")] = False,
) -> None:
    """Print the versions, the processor, and the measured limits of this machine."""
    from rich.table import Table

    import tilewright
    from tilewright.kernel.compiler_flags import build_flags

    if cflags or libs:
        flags = [*(build_flags().cflags if cflags else ()), *(build_flags().libs if libs else ())]
        print(json.dumps(flags) if as_json else shlex.join(flags))
        return
    from tilewright import _core
    from tilewright.support import machine

    host, cpu = _core.Target("native"), _core.host_cpu()
    versions = {"tilewright": tilewright.__version__, "llvm": _core.llvm_version(), "python": sys.version.split()[0]}
    limits = [machine.roofs(threads) for threads in dict.fromkeys([1, host.num_cores])]
    described = (text.split("\n") for text in _core.opencl_devices())
    keys = ("name", "version", "platform", "driver")
    devices = [dict(zip(keys, lines, strict=True)) for lines in described]
    described = (text.split("\n") for text in _core.cuda_devices())
    gpus = [{"name": name, "capability": capability, "driver": driver} for name, capability, driver in described]
    if as_json:
        processor = {**cpu, "target": str(host), "vector_bits": host.vector_bits, "features": host.features}
        rows = [
            {
                "threads": roofs.threads,
                "operations_per_second": roofs.peaks,
                "bytes_per_second": {level.name: level.bandwidth for level in roofs.levels},
            }
            for roofs in limits
        ]
        parts = {"versions": versions, "processor": processor, "opencl": devices, "cuda": gpus, "limits": rows}
        print(json.dumps(parts))
        return
    print(f"tilewright {versions['tilewright']}, LLVM {versions['llvm']}, Python {versions['python']}")
    print(f"processor: {cpu['brand'].strip()} ({host.cpu}), {host.num_cores} cores, {host.vector_bits}-bit vectors")
    print(f"features: {' '.join(host.features)}")
    for device in devices:
        print(f"OpenCL device: {device['name']}, {device['version']}")
    if not devices:
        print("OpenCL device: none")
    for gpu in gpus:
        print(f"CUDA device: {gpu['name']}, {gpu['capability']}, {gpu['driver']}")
    if not gpus:
        print("CUDA device: none")
    for roofs in limits:
        title = f"measured limits, {roofs.threads} thread{'s' if roofs.threads > 1 else ''}"
        listing = Table(title=title, title_justify="left")
        listing.add_column("limit")
        listing.add_column("rate", justify="right")
        for dtype, rate in roofs.peaks.items():
            listing.add_row(f"{dtype} arithmetic", f"{rate / 1e9:.0f} {machine.rate_unit(dtype)}")
        for level in roofs.levels:
            size = f" ({level.capacity >> 10} KiB)" if level.capacity else ""
            listing.add_row(f"reading {level.name}{size}", f"{level.bandwidth / 1e9:.0f} GB/s")
        console().print(listing)
