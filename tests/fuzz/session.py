"""Runs of the random test: children do the work, so that a crash or a hang is a finding and not the end.

A child is this file as a program. It reads requests as lines of JSON from its standard input and answers with lines of
JSON: `{"program": 7}` draws and judges program 7 with its sequences, `{"case": ...}` judges one case again,
`{"trace": ...}` gives the steps of a case as Python, `{"tell": [7, 3]}` tells those of sequence 3 as they are drawn.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from fuzz import devices, minimize, programs, sparse
from fuzz.judge import Case, Finding, Judge, NoCase
from fuzz.steps import Scheduling, Step

#: Sequences for each program.
SEQUENCES = 32
#: One sparse program for so many others.
SPARSE = 8
#: One kernel for devices for so many others.
DEVICES = 8
#: Seconds of a processor after which a child that works on one program is taken to hang; ten times as long by the
#: clock, as others may keep the machine busy.
PATIENCE = 120.0
#: Findings of one sort (the same is wrong after the same steps) that are made smaller; others are only counted.
EACH = 2
#: Programs for each child: what compiled kernels leave in its memory goes with it.
PROGRAMS_PER_CHILD = 100


# ---- in the child


def run_program(number: int, without: Collection[str] = ()) -> dict[str, Any]:
    """Judges a program and its sequences, to the first finding."""
    drawn = programs.draw(number)
    case = Case(drawn.text, drawn.special, drawn.sizes, number)
    counts: Counter[str] = Counter(programs=1)
    finding: dict[str, Any] | None = None
    try:
        judge = Judge(case, counts)
        judge.original()
        for sequence in range(SEQUENCES):
            counts["sequences"] += 1
            report({"sequence": sequence})
            judge.sequence(number * 1000 + sequence, without=without)
        if number % SPARSE == 0:
            report({"part": "sparse"})
            case = Case(sparse.draw(number).text, seed=number)
            sparse.judge(number, counts)
        if number % DEVICES == DEVICES // 2:
            report({"part": "devices"})
            case = Case(devices.text_of(number), seed=number)
            devices.judge(number, counts)
    except NoCase as no_case:
        counts[f"no case: {no_case}"] += 1
    except Finding as found:
        finding = {"kind": found.kind, "detail": found.detail, "case": dataclasses.asdict(case)}
    return {"counts": counts, "finding": finding}


def run_case(case: Case) -> dict[str, Any]:
    """Judges the program, then its steps; a sparse program and a kernel for devices only as they were drawn."""
    try:
        if sparse.is_sparse(case.text):
            if case.text == sparse.draw(case.seed).text:
                sparse.judge(case.seed)
            return {"kind": None}
        if case.text.startswith(devices.MARK):
            if case.text == devices.text_of(case.seed):
                devices.judge(case.seed)
            return {"kind": None}
        judge = Judge(case)
        judge.original()
        if case.steps:
            judge.again()
    except NoCase:
        return {"kind": None}
    except Finding as found:
        return {"kind": found.kind}
    return {"kind": None}


def replayed(case: Case) -> str:
    """The steps of a case as Python; a step that fails is named."""
    judge = Judge(case)
    done = Scheduling(judge.func, judge.names, 1)
    failed = ""
    for step in case.steps:
        try:
            done.again(step)
        except Exception as error:
            failed = f"\n# then {step.name} of {step.choices}: {type(error).__name__}"
    return "\n".join(done.sch.trace.simplified().as_python()) + failed


def told(number: int, sequence: int, without: Collection[str]) -> None:
    """Draws a sequence once more and reports its steps as they are drawn: the last report before a crash has them."""
    drawn = programs.draw(number)
    judge = Judge(Case(drawn.text, drawn.special, drawn.sizes, number))

    def tell(steps: list[Step]) -> None:
        report({"steps": [dataclasses.asdict(step) for step in steps]})

    judge.sequence(number * 1000 + sequence, tell, without)


def case_from(fields: dict[str, Any]) -> Case:
    return Case(**{**fields, "steps": [Step(**step) for step in fields["steps"]]})


#: Where a child answers; None: on its standard output.
_answers: TextIO | None = None


def report(message: dict[str, Any]) -> None:
    stream = _answers or sys.stdout
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if "program" in request:
        return run_program(request["program"], request.get("without", ()))
    if "trace" in request:
        return {"trace": replayed(case_from(request["trace"]))}
    if "tell" in request:
        told(*request["tell"], request.get("without", ()))
        return {}
    return run_case(case_from(request["case"]))


def child() -> None:
    """Answers requests until there are none. What libraries print goes where errors go: answers stay JSON."""
    global _answers
    _answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        report({"done": answer(json.loads(line))})


# ---- in the parent


class Crash(Exception):
    """The child ended, or had to be ended. The argument is the kind of the finding."""


def processor_time(process: subprocess.Popen[bytes]) -> float:
    """Seconds for which a process has computed; by the clock where the system does not tell."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Child:
    """A child process, started anew when it has gone."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", "fuzz.session")) -> None:
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.requests = 0
        self.last: dict[str, Any] = {}
        self.rest = b""

    def start(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            folder = str(Path(__file__).resolve().parents[1])
            paths = [folder, *(path for path in sys.path if path)]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env)
            self.requests, self.rest = 0, b""
        return self.process

    def stop(self) -> int:
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.kill()
        return process.wait()

    def ask(self, request: dict[str, Any], patience: float = PATIENCE) -> dict[str, Any]:
        """The answer to a request; `last` keeps what was reported before it.

        Raises:
            Crash: there is none.
        """
        process = self.start()
        self.requests += 1
        self.last = {}
        assert process.stdin is not None
        try:
            process.stdin.write((json.dumps(request) + "\n").encode())
            process.stdin.flush()
        except BrokenPipeError:
            pass  # its end is seen below
        end = time.monotonic() + 10 * patience, processor_time(process) + patience
        while True:
            message = self.line(process, *end)
            if "done" in message:
                if self.requests >= PROGRAMS_PER_CHILD:
                    self.stop()
                done: dict[str, Any] = message["done"]
                return done
            self.last = message

    def line(self, process: subprocess.Popen[bytes], clock: float, processor: float) -> dict[str, Any]:
        assert process.stdout is not None
        while b"\n" not in self.rest:
            if not select.select([process.stdout], [], [], 1.0)[0]:
                if time.monotonic() < clock and processor_time(process) < processor:
                    continue
                self.stop()
                raise Crash("hang")
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                status = process.wait()
                self.process = None
                raise Crash(f"crash with status {status}")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message


@dataclass
class Report:
    """What a run has found and counted."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, str, Case, int]] = field(default_factory=list)
    next_seed: int = 0
    seconds: float = 0.0


def case_of_part(number: int, part: str) -> Case:
    """What was judged when a child reported this part of the program of a number."""
    if part == "sparse":
        return Case(sparse.draw(number).text, seed=number)
    if part == "devices":
        return Case(devices.text_of(number), seed=number)
    drawn = programs.draw(number)
    return Case(drawn.text, drawn.special, drawn.sizes, number)


class Session:
    """A run: programs from a number on, for some time."""

    def __init__(
        self,
        say: Callable[[str], None] = lambda text: None,
        minimizing: float = 60.0,
        child: Any = None,
        without: Collection[str] = (),
    ) -> None:
        self.child = child or Child()
        self.say = say
        self.minimizing = minimizing
        self.without = list(without)

    def run(self, seconds: float, seed: int, limit: int = 10, programs: int | None = None) -> Report:
        """Judges programs seed, seed + 1, ... until the time is over, or there are so many findings or programs.

        An interrupt ends it, too: the program that is being judged then is the next seed.
        """
        result = Report(next_seed=seed)
        begin = time.monotonic()
        seen: Counter[str] = Counter()
        number = seed
        try:
            while time.monotonic() - begin < seconds and len(result.findings) < limit:
                if programs is not None and result.next_seed >= seed + programs:
                    break
                number = result.next_seed
                result.next_seed += 1
                finding = self.program(number, result.counts)
                if finding is None:
                    continue
                kind, detail, case = finding
                result.counts["findings"] += 1
                kind, case = self.recognized(kind, case)
                sort = " ".join([kind, *(("after", *(step.name for step in case.steps)) if case.steps else ())])
                result.counts[f"finding: {sort}"] += 1
                seen[sort] += 1
                if seen[sort] > EACH:
                    continue
                self.say(f"program {number}: {sort}\n{detail}\nmaking it smaller ...")
                case = minimize.minimize(case, kind, self.verdict, self.minimizing)
                result.findings.append((kind, detail, case, number))
                self.say(self.reproduction(kind, case, number))
        except KeyboardInterrupt:
            result.next_seed = number
        finally:
            self.child.stop()
        result.seconds = time.monotonic() - begin
        return result

    def program(self, number: int, counts: Counter[str]) -> tuple[str, str, Case] | None:
        """Judges one program: the finding, if there is one."""
        try:
            judged = self.child.ask({"program": number, "without": self.without})
        except Crash as crash:
            counts["programs"] += 1
            case = case_of_part(number, self.child.last.get("part", ""))
            return str(crash), f"after {self.child.last}", self.crashed(case, number)
        counts.update(judged["counts"])
        found = judged["finding"]
        return found and (found["kind"], found["detail"], case_from(found["case"]))

    def crashed(self, case: Case, number: int) -> Case:
        """The case of a crash, with the steps that led to it."""
        sequence = self.child.last.get("sequence")
        if sequence is None:
            return case
        try:
            self.child.ask({"tell": [number, sequence], "without": self.without})
        except Crash:
            steps = [Step(**step) for step in self.child.last.get("steps", [])]
            return dataclasses.replace(case, steps=steps)
        return case

    def verdict(self, case: Case) -> str | None:
        try:
            kind: str | None = self.child.ask({"case": dataclasses.asdict(case)}, PATIENCE / 4)["kind"]
            return kind
        except Crash as crash:
            return str(crash)

    def recognized(self, kind: str, case: Case) -> tuple[str, Case]:
        """The case with as few steps as will do, and its kind: that which is met first where there are several."""
        without = dataclasses.replace(case, with_kernel=False)
        if self.verdict(without) == kind:
            case = without
        met = self.verdict(case)
        if met is None:
            return kind, case
        return met, minimize.reduce(case, met, self.verdict, [minimize.with_fewer_steps])

    def reproduction(self, kind: str, case: Case, number: int) -> str:
        """A script that shows the finding by itself."""
        try:
            trace = self.child.ask({"trace": dataclasses.asdict(case)})["trace"]
        except Crash:
            trace = f"# {case.steps}"
        lines = [
            f"# {kind} (program {number})",
            f"# arguments: fuzz.arguments.draw(func, sizes, special={case.special}, seed={case.seed}) of {case.sizes}",
            "from tilewright.script import tir as T",
            "import tilewright as tw",
            "",
            case.text.rstrip(),
            "",
            "sch = tw.Schedule(main, seed=1)",
            trace,
        ]
        return "\n".join(lines)


if __name__ == "__main__":
    child()
