"""How many workers one session keeps busy: simulated workers that sleep instead of building and measuring.

    python benchmarks/cluster.py --workers 1 4 16 64 --candidates 10
    python benchmarks/cluster.py --against 5

The first command simulates workers. For each number of them: the share of their time that they measured, candidates per
second, and the processor time of the session for each candidate. Workers are `distributed.Worker` objects in two
processes of this machine, which has to carry them, too: the processor time of scheduler and workers is part of what
bounds the curve. A candidate takes --seconds to measure (0.5 by default) and --build to build; its result is that of
one real measurement. The rates at which this machine samples and builds candidates are printed first.

The second command compares one real worker on this machine, which measures and builds, with a search without a cluster:
candidates per second of a product of matrices, alternately, with a seed for each pair, and the processor time of all
processes for each candidate, which other programs disturb less. Its size is such that a call takes --call milliseconds
(3 by default) at this machine's peak rate for one thread, or --size; of several sizes, the geometric mean is printed,
too. --separate starts two workers: one measures, one builds. Before, each of both has searched once, since a process
takes a second to import Dask.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright import _core
from tilewright.cluster import labels, preload, processors, tasks
from tilewright.cluster.connection import Cluster
from tilewright.cluster.measurer import ClusterMeasurer
from tilewright.cluster.messages import pack, unpack
from tilewright.cluster.worker import be_quiet
from tilewright.search import session as session_of_search
from tilewright.support import machine
from tilewright.testing import workloads

#: processes that hold the workers
PROCESSES = 2
#: builders for each worker that measures, beyond what the durations ask for
SPARE = 1.5


def simulated(result: bytes, seconds: float, build_seconds: float) -> None:
    """Puts tasks that sleep in the place of those that build and measure."""
    turns: dict[str, processors.Turns] = collections.defaultdict(processors.Turns)

    def build(specification: bytes, modules: list[bytes], options: list[bytes]) -> bytes:
        run = tasks.Run(unpack(specification))
        run.begins()
        built = []
        for module in modules:
            time.sleep(build_seconds)
            run.lap("building")
            built.append({"result": result, "object": module, "times": run.take_times()})
        return pack({"built": built, "worker": run._worker.address})

    def measure(
        specification: bytes, program: bytes, reference: bytes, chunks: list[bytes], incumbent: bytes | None
    ) -> bytes:
        run, answers = tasks.Run(unpack(specification)), []
        with turns[run._worker.address].turn(1, run.wanted):
            run.begins()
            for _ in unpack(specification)["candidates"]:
                time.sleep(seconds)
                run.lap("measuring")
                answers.append({"times": run.take_times(), "result": result})
        answer = {"answers": answers, "host": labels.host_text(), "worker": run._worker.address}
        return pack(answer if answers else answer | {"reference": result, "outputs": [b""]})

    for task in (build, measure):
        task.__module__, task.__qualname__ = tasks.__name__, task.__name__
        setattr(tasks, task.__name__, task)


async def run_workers(address: str, measure: int, build: int) -> None:
    be_quiet()
    import distributed

    made = []
    for number in range(measure + build):
        slots = (1, 0) if number < measure else (0, 1)
        label = labels.label(*slots, probe=False) | {"host": {"host": f"simulated-{os.getpid()}-{number}"}}
        worker = distributed.Worker(
            address,
            nthreads=3,
            resources=labels.resources(*slots, labels.native_key()),
            startup_information={labels.NAME: functools.partial(lambda told, _: told, label)},
            memory_limit=0,
            dashboard=False,
        )
        made.append(worker)
    await asyncio.gather(*made)
    print("ready", flush=True)
    await asyncio.gather(*(worker.finished() for worker in made))


async def run_scheduler() -> None:
    import dask

    dask.config.set({"logging.distributed": "error"})
    import distributed

    warnings.simplefilter("ignore")  # of the port of the dashboard, which other schedulers have
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        preload.dask_setup(scheduler)
        print(scheduler.address, flush=True)
        await scheduler.finished()


def session(address: str, workers: int, candidates: int, seconds: float) -> dict[str, float]:
    """Measures as a session does: batches of twice the workers, one of them ahead."""
    cluster = Cluster(address)
    while sum(each.measure for each in cluster.workers(now=True).values()) < workers:
        time.sleep(0.1)
    program = {"threads": 1, "options": {}}
    measurer = ClusterMeasurer(cluster, program, labels.native_key(), [("Y", "float32", (0,))], 1, dict)
    measurer.submit(2**64 - 1, b"reference", b"", "main", reference=True)
    while not measurer.poll(1.0):
        pass
    batch, drawn, outstanding, done = session_of_search.default_batch(workers), 0, 0, 0
    first = spent = passed = used = 0.0
    begun = finished = 0
    while done < candidates:
        while outstanding < 2 * batch and drawn < candidates:
            for _ in range(batch):
                measurer.submit(drawn, bytes(20_000), b"", "main")
                drawn, outstanding = drawn + 1, outstanding + 1
        results = len(measurer.poll(0.05))
        done, outstanding = done + results, outstanding - results
        if not first and done > workers:  # all of them have begun
            first, begun, spent = time.monotonic(), done, time.process_time()
        if done < candidates - 2 * workers:  # later, some have nothing left to do
            passed, finished, used = time.monotonic() - first, done, time.process_time() - spent
    measurer.close()
    cluster.close()
    return {
        "workers": workers,
        "busy": (finished - begun) * seconds / (workers * passed),
        "candidates/s": (finished - begun) / passed,
        "session ms/candidate": 1e3 * used / (finished - begun),
        "session MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def real_result() -> bytes:
    """Return the bytes of one result that is really measured."""
    from tilewright.search.expectations import Expectations
    from tilewright.task.task import task_of

    task, target = task_of(workloads.matmul(32, 32, 32)), _core.Target("native").with_num_cores(1)
    arguments = Expectations(task, {}, 0).arguments()
    pipeline = _core.WorkerPipeline(
        arguments=arguments, reduction_length=task.reduction_length, options=_core.PipelineOptions()
    )
    builder = _core.WorkerPipeline(
        arguments=[], reduction_length=1, options=_core.PipelineOptions(builders=1, builds_only=True)
    )
    builder.build(*_core.candidate_parts(task.module, target, True))
    while not (built := builder.poll(1.0)):
        pass
    code = built[0][2]
    assert code is not None
    for reference in (True, False):
        pipeline.measure(code, task.entry, None, reference=reference)
        while not (found := pipeline.poll(1.0)):
            pass
    pipeline.close()
    builder.close()
    return found[0][1]


def rates() -> None:
    """Prints how fast this machine samples and builds the candidates of a product."""
    result = tw.tune(workloads.matmul(64, 64, 64), trials=32, progress=None, database="memory")
    sampling = result.seconds.get("sampling", 0.0) + result.seconds.get("lowering", 0.0)
    built = result.progress.median_build_seconds
    print(f"sampling: {32 / sampling:.1f} candidates/s; building: {1 / built:.1f} candidates/s and processor")


def simulate(workers: int, candidates: int, seconds: float, build: float) -> dict[str, float]:
    """One point of the curve, in processes of its own."""
    this = [sys.executable, __file__]
    options = ["--seconds", str(seconds), "--build", str(build)]
    processes = []
    try:
        scheduler = subprocess.Popen([*this, "scheduler"], stdout=subprocess.PIPE, text=True)
        processes.append(scheduler)
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()
        parts = min(PROCESSES, workers)
        builders = max(1, round(workers * build / seconds * SPARE / parts))
        for part in range(parts):
            share = workers // parts + (part < workers % parts)
            command = [*this, "workers", address, str(share), str(builders), *options]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            processes.append(process)
            assert process.stdout is not None
            process.stdout.readline()
        count = candidates * workers
        before = [processor_seconds(process) for process in processes]
        command = [*this, "session", address, str(workers), str(count), *options]
        answer: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        spent = [processor_seconds(process) - begin for process, begin in zip(processes, before, strict=True)]
        each = {"scheduler ms/candidate": spent[0], "workers ms/candidate": sum(spent[1:])}
        return answer | {name: 1e3 * seconds / count for name, seconds in each.items()}
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def size_of(call: float) -> int:
    """Return the size of a product that takes so many seconds at this machine's peak rate for one thread."""
    return 64 * max(1, round((call * machine.roofs(1).peaks["float32"] / 2) ** (1 / 3) / 64))


def against(pairs: int, sizes: list[int], asked: dict[str, Any], *, separate: bool) -> None:
    """Prints candidates per second with a worker on this machine, and without a cluster.

    Args:
        pairs: number of searches of each kind, for each size.
        sizes: rows and columns of the matrices.
        asked: further arguments of both searches.
        separate: whether one worker measures, and another one builds.
    """
    processes = [subprocess.Popen([sys.executable, __file__, "scheduler"], stdout=subprocess.PIPE, text=True)]
    try:
        assert processes[0].stdout is not None
        address = processes[0].stdout.readline().strip()
        for measure, build in ((1, 0), (0, 1)) if separate else ((1, 1),):
            command = [sys.executable, "-m", "tilewright", "worker", address]
            command += ["--measure", str(measure), "--build", str(build)]
            processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            errors = processes[-1].stderr
            assert errors is not None
            while "works as" not in errors.readline():
                pass
        session_of_search.roofline_bound = lambda *_: 0.0  # only searches on this machine end at its roofline
        warnings.simplefilter("ignore", tw.PerformanceWarning)  # of a host that drifts: it compares with itself
        for where in (None, address):
            tw.tune(workloads.matmul(64, 64, 64), cluster=where, trials=16, progress=None, database="memory")
        ratios: dict[int, list[float]] = {size: [] for size in sizes}
        for seed in range(pairs):
            for size in sizes:
                ratios[size].append(compare(size, seed, asked, address))
        for size, found in ratios.items():
            print(f"{size} cubed: ratio {statistics.median(found):.2f}, {min(found):.2f} to {max(found):.2f}")
        if len(sizes) > 1:
            mean = statistics.geometric_mean(map(statistics.median, ratios.values()))
            print(f"geometric mean of the medians: {mean:.2f}")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def compare(size: int, seed: int, asked: dict[str, Any], address: str, trials: int = 192) -> float:
    """Search without a cluster and on one; return the ratio of their candidates per second.

    Args:
        size: rows and columns of the matrices.
        seed: the seed of both searches; with an even one, that on the cluster comes first.
        asked: further arguments of both searches.
        address: the address of the cluster.
        trials: candidates of a search.
    """
    asked = {"trials": trials, "seed": seed, "progress": None, "database": "memory"} | asked
    rates, spent = {}, {}
    for where in (None, address) if seed % 2 else (address, None):
        before = family_seconds()
        result = tw.tune(workloads.matmul(size, size, size), cluster=where, **asked)
        rates[where] = result.progress.rate
        spent[where] = (family_seconds() - before) / result.progress.trials
    print(
        f"{size} cubed, seed {seed}: {rates[None]:.1f} candidates/s, on the cluster {rates[address]:.1f}; processor "
        f"time of a candidate {1e3 * spent[None]:.1f} ms, on the cluster {1e3 * spent[address]:.1f} ms",
        flush=True,
    )
    return rates[address] / rates[None]


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """Return the processor time that a process has used so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_seconds() -> float:
    """Return the processor time of this process and all processes below it, also of those that have ended."""
    seconds, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            seconds[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def is_ours(process: int) -> bool:
        while process not in (0, os.getpid()):
            process = parents.get(process, 0)
        return process != 0

    return sum(spent for process, spent in seconds.items() if is_ours(process))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--candidates", type=int, default=10, help="for each worker")
    parser.add_argument("--seconds", type=float, default=0.5, help="that a candidate is measured")
    parser.add_argument("--build", type=float, default=0.05, help="seconds of a build")
    parser.add_argument("--against", type=int, metavar="PAIRS", help="compare with searches without a cluster")
    parser.add_argument("--separate", action="store_true", help="one worker measures, and another one builds")
    parser.add_argument("--batch", type=int, help="candidates that are sampled at a time in comparisons")
    parser.add_argument("--strategy", default="guided", help="replay-trace: both searches measure the same candidates")
    parser.add_argument("--call", type=float, default=3.0, help="milliseconds of a call of its kernels")
    parser.add_argument("--size", type=int, nargs="+", help="rows and columns of the matrices; overrides --call")
    options = parser.parse_args()
    match options.part:
        case ["scheduler"]:
            asyncio.run(run_scheduler())
        case ["workers", address, measure, build]:
            simulated(real_result(), options.seconds, options.build)
            asyncio.run(run_workers(address, int(measure), int(build)))
        case ["session", address, workers, candidates]:
            print(json.dumps(session(address, int(workers), int(candidates), options.seconds)))
        case _ if options.against:
            sizes = options.size or [size_of(1e-3 * options.call)]
            asked = {"batch": options.batch, "strategy": options.strategy}
            against(options.against, sizes, asked, separate=options.separate)
        case _:
            rates()
            for workers in options.workers:
                point = simulate(workers, options.candidates, options.seconds, options.build)
                print("; ".join(f"{name}: {value:.3g}" for name, value in point.items()), flush=True)


if __name__ == "__main__":
    main()
