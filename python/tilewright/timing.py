"""Time kernels, and compare their time with the limits of the machine.

Functions that are compared on one thread are timed alternately within one run (slices of a few milliseconds, A B C A B
C ...), because the speed of a machine drifts. Medians and quartiles are over slices, without those that other programs
preempted. If too few remain, the CPU time of the thread counts in preempted slices. With several threads, each function
is timed in consecutive slices, because spinning threads of another library would disturb the next function.
Tilewright's kernels are called repeatedly from C++ (:class:`KernelCalls`), so that their times do not include Python's
overhead.
"""

from __future__ import annotations

import contextlib
import math
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.support import machine
from tilewright.support.machine import Roof, Roofs
from tilewright.support.other_names import renamed
from tilewright.support.wrong_arguments import explained
from tilewright.tables import Table

if TYPE_CHECKING:
    from tilewright.kernel.kernel import Kernel

__all__ = [
    "InterleavedTimes",
    "KernelCalls",
    "Timing",
    "Work",
    "compare",
    "format_seconds",
    "limit_threads",
    "ratio",
    "time_interleaved",
]

SLICE_SECONDS = 0.003


def __getattr__(name: str) -> Any:
    return globals()[renamed(__name__, name)]


@dataclass(frozen=True)
class Work:
    """Operations and memory traffic of one call.

    Attributes:
        flops: floating-point operations (a multiply-add is two).
        bytes: compulsory traffic: each parameter that is read and each one that is written counts once.
        dtype: data type of the operations.
        exact: False if a size was estimated; derived numbers are marked with ``~``.
    """

    flops: float
    bytes: float
    dtype: str = "float32"
    exact: bool = True


#: work of an unknown program
NO_WORK = Work(0, 0)


@dataclass(frozen=True)
class Timing:
    """Times of one kernel.

    Attributes:
        seconds: seconds per call, one number for each slice.
        work: work of a call.
        threads: number of threads that the kernel could use.
        cold: whether the caches held other data before each call.
        roof: the binding limit of the machine, with the minimum time that it allows.
        disturbed: fraction of the slices that other programs preempted. If there are enough others, `seconds` has only
            these.
    """

    seconds: tuple[float, ...]
    work: Work
    threads: int
    cold: bool
    roof: Roof
    disturbed: float = 0.0

    @property
    def median(self) -> float:
        """Return the median time of a call in seconds."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Return the first and third quartile of the times of a call in seconds."""
        if len(self.seconds) < 2:
            return (self.seconds[0], self.seconds[0])
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (low, high)

    @property
    def gflops(self) -> float:
        """Return the GFLOP/s (1e9 floating-point operations per second) of a call that takes the median time."""
        return self.work.flops / self.median / 1e9

    @property
    def gbs(self) -> float:
        """Return the GB/s (1e9 bytes per second) of compulsory memory traffic of a call that takes the median time."""
        return self.work.bytes / self.median / 1e9

    @property
    def fraction(self) -> float:
        """Return the speed as a fraction of the binding limit. 1 means that no faster kernel exists on this machine. A
        larger number means that the limit was measured too low, twice, because other programs were running."""
        return self.roof.seconds / self.median

    def __repr__(self) -> str:
        return f"<Timing {self}>"

    def table(self) -> Table:
        """Return the times and rates as a table, which is also what notebooks show."""
        low, high = self.quartiles
        cells = {"time": format_seconds(self.median), "middle half": f"{format_seconds(low)} to {format_seconds(high)}"}
        if self.work.flops:
            cells[machine.rate_unit(self.work.dtype)] = format_estimate(self.gflops, self.work)
        cells["GB/s"] = format_estimate(self.gbs, self.work)
        cells[f"of {self.roof.name}"] = format_share(self.fraction, self.work)
        title = f"{self.threads} thread{'' if self.threads == 1 else 's'}, {'cold' if self.cold else 'warm'} caches"
        title += contention_label(self.disturbed)
        return Table(title, tuple(cells), (tuple(cells.values()),))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __str__(self) -> str:
        low, high = self.quartiles
        rate = format_estimate(self.gflops, self.work)
        rate = f"{rate} {machine.rate_unit(self.work.dtype)}, " if self.work.flops else ""
        return (
            f"{format_seconds(self.median)} ({format_seconds(low)} to {format_seconds(high)}), "
            f"{rate}{format_estimate(self.gbs, self.work)} GB/s, {format_share(self.fraction, self.work)} "
            f"of {self.roof.name}{contention_remark(self.disturbed)}"
        )


@explained
def contention_remark(disturbed: float) -> str:
    """Return a remark on a time by the fraction of preempted slices: ", contended", or the number of slices; "" if
    there are hardly any."""
    if disturbed > CONTENDED_ABOVE:
        return contention_label(disturbed)
    return f", {disturbed:.0%} of the slices disturbed" if disturbed > ALONE_BELOW else ""


@explained
def contention_label(disturbed: float) -> str:
    """Return ", alone" or ", contended" by the fraction of slices that other programs preempted; "" for fractions
    between."""
    if disturbed > CONTENDED_ABOVE:
        return ", contended"
    return ", alone" if disturbed <= ALONE_BELOW else ""


#: fraction of preempted slices above which a measurement is contended
CONTENDED_ABOVE = 0.5
#: fraction of preempted slices up to which a measurement was alone
ALONE_BELOW = 0.1
#: number of undisturbed rounds that is sufficient to discard the others
_MIN_QUIET_ROUNDS = 3


@explained
def format_seconds(seconds: float) -> str:
    """Return three digits and a unit: ``1.25 ms``."""
    if seconds >= 999.5:
        return f"{seconds:.0f} s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        digits = f"{seconds / scale:.3g}"
        if float(digits) >= 1:  # after rounding: 999.9 us are 1 ms
            return f"{digits} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


@explained
def work_of_arrays(args: Sequence[object]) -> Work:
    """Return the work of a call without its program: the bytes of its arrays, and no operations."""
    arrays = [arg for arg in args if hasattr(arg, "nbytes")]
    dtypes = [str(getattr(array, "dtype", "float32")).removeprefix("torch.") for array in arrays]
    floats = [dtype for dtype in dtypes if "float" in dtype]
    return Work(0.0, float(sum(int(array.nbytes) for array in arrays)), floats[0] if floats else "int32", exact=False)


@explained
def format_estimate(rate: float, work: Work) -> str:
    """Return a rate, marked with ``~`` if the work was estimated."""
    return f"{'' if work.exact else '~'}{rate:.1f}"


@explained
def format_share(fraction: float, work: Work) -> str:
    """Return a fraction of a limit in percent, marked with ``!`` above 100."""
    percent = round(100 * fraction)
    return f"{'' if work.exact else '~'}{percent} %{'!' if percent > 100 else ''}"


@contextlib.contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Limit Tilewright's pool, and the pools of NumPy's BLAS and of OpenMP, to `threads` threads inside the context."""
    from threadpoolctl import threadpool_limits

    before = _core.get_num_threads()
    _core.set_num_threads(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        _core.set_num_threads(before)


#: a longer call is not repeated for warm-up, nor more often than needed
LONG_CALL_SECONDS = 0.25


class KernelCalls:
    """A kernel with its arguments, timed without Python's overhead."""

    @explained
    def __init__(self, kernel: Kernel, args: Sequence[Any]) -> None:
        self._kernel, self._args = kernel, tuple(args)

    def __call__(self) -> None:
        """Call the kernel once, from Python."""
        self._kernel(*self._args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self, renamed(f"{__name__}.KernelCalls", name))

    def seconds_of(self, calls: int) -> float:
        """Return the seconds of several consecutive calls."""
        return _core.time_calls(self._kernel, calls, *self._args)


def _seconds_of(function: Callable[[], object], calls: int) -> float:
    if isinstance(function, KernelCalls):
        return function.seconds_of(calls)
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - start


def _seconds_of_a_call(function: Callable[[], object]) -> float:
    """Return the approximate seconds of a call; warms up the function."""
    calls = 1
    while True:
        spent = _seconds_of(function, calls)
        if spent >= SLICE_SECONDS / 2:
            return spent / calls
        calls *= 4


class InterleavedTimes(dict[str, tuple[float, ...]]):
    """Seconds per call by name, one number for each round.

    Attributes:
        disturbed: by name, the fraction of the slices that other programs preempted.
    """

    disturbed: Mapping[str, float]

    @explained
    def __init__(self, seconds: Mapping[str, tuple[float, ...]], disturbed: Mapping[str, float]) -> None:
        super().__init__(seconds)
        self.disturbed = disturbed

    def __str__(self) -> str:
        return "\n".join(
            f"{name}: {format_seconds(statistics.median(seconds))}{contention_remark(self.disturbed[name])}"
            for name, seconds in self.items()
        )


@dataclass(frozen=True)
class Slices:
    """Seconds per call of functions that were timed alternately, one number for each round, and the fraction of
    preempted slices. If enough rounds were not preempted, `seconds` has only these."""

    seconds: dict[str, tuple[float, ...]]
    disturbed: dict[str, float]


def _involuntary_switches(threads: int) -> int:
    """Return how often other programs preempted the calling thread, or with several threads any thread of this
    process."""
    return resource.getrusage(resource.RUSAGE_SELF if threads > 1 else resource.RUSAGE_THREAD).ru_nivcsw


@dataclass(frozen=True)
class _Slice:
    """Seconds of consecutive calls.

    Attributes:
        counted: the seconds that count.
        wall: wall-clock time in seconds.
        preempted: whether other programs preempted the calls.
    """

    counted: float
    wall: float
    preempted: bool


def _time_slice(function: Callable[[], object], calls: int, threads: int) -> _Slice:
    """Time consecutive calls once. `counted` is the wall-clock time. If the slice was preempted on one thread, and no
    other thread of the process was busy, it is the CPU time."""
    before, waited = _involuntary_switches(threads), _run_queue_seconds() if threads > 1 else 0.0
    of_thread, of_all = time.thread_time(), time.process_time()
    seconds = _seconds_of(function, calls)
    of_thread, of_all = time.thread_time() - of_thread, time.process_time() - of_all
    stolen = seconds - of_thread if threads == 1 else _run_queue_seconds() - waited
    # The operating system preempts a thread for some microseconds now and then, which does not count.
    preempted = _involuntary_switches(threads) > before and not stolen <= _MIN_STOLEN_FRACTION * seconds
    no_other_threads = threads == 1 and of_all - of_thread < _MAX_OTHER_THREADS_FRACTION * of_thread
    return _Slice(min(seconds, of_thread) if preempted and no_other_threads else seconds, seconds, preempted)


def _run_queue_seconds() -> float:
    """Return the seconds that runnable threads of this process waited for a CPU, from schedstat; infinity if
    unknown."""
    waited = 0
    try:
        for task in Path("/proc/self/task").iterdir():
            waited += int((task / "schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return math.inf
    return waited * 1e-9


#: minimum fraction of a slice that other programs must take for it to count as disturbed
_MIN_STOLEN_FRACTION = 0.01
#: fraction of a thread's time that other threads of the process, such as Python's own, may take
_MAX_OTHER_THREADS_FRACTION = 0.05


@explained
def time_slices(
    functions: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    budget: float = 3.0,
    before_each: Callable[[], object] | None = None,
    threads: int = 1,
) -> Slices:
    """Time functions as :func:`time_interleaved` does, with the fractions of preempted slices.

    Args:
        functions: the functions by name; called without arguments.
        rounds: number of slices of each function.
        budget: seconds for all functions.
        before_each: called, untimed, before each call.
        threads: number of threads that the functions use.
    """
    first: dict[str, tuple[float, bool]] = {}
    #: seconds of a call, which determine the number of calls in a slice: the minimum of those measured. Preempted calls
    #: would make slices short, and functions with long slices would be preempted more often.
    least: dict[str, float] = {}
    for name, function in functions.items():
        before = _involuntary_switches(threads)
        seconds = _seconds_of_a_call(function)
        preempted = _involuntary_switches(threads) > before
        if seconds > LONG_CALL_SECONDS:
            first[name] = (seconds, preempted)
        else:
            least[name] = seconds
    begin = time.perf_counter()
    done: list[dict[str, tuple[float, bool]]] = []
    while len(done) < rounds and not (len(done) >= 3 and time.perf_counter() - begin > budget):
        done.append({})
        for name in least:
            if before_each:
                before_each()
            count = 1 if before_each else max(1, round(SLICE_SECONDS / least[name]))
            timed = _time_slice(functions[name], count, threads)
            done[-1][name] = (timed.counted / count, timed.preempted)
            least[name] = min(least[name], timed.wall / count)
    quiet = [each for each in done if not any(preempted for _, preempted in each.values())]
    counted = quiet if len(quiet) >= _MIN_QUIET_ROUNDS else done
    samples = {name: [first[name]] if name in first else [each[name] for each in done] for name in functions}
    return Slices(
        {name: (first[name][0],) if name in first else tuple(each[name][0] for each in counted) for name in functions},
        {name: sum(preempted for _, preempted in found) / max(len(found), 1) for name, found in samples.items()},
    )


def time_interleaved(
    functions: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    budget: float = 3.0,
    before_each: Callable[[], object] | None = None,
) -> InterleavedTimes:
    """Time functions alternately; return the seconds per call of each, one number for each round.

    Rounds that other programs preempted are discarded if enough others remain; ``disturbed`` of the result has their
    fraction. The result prints as medians, marked if they were contended.

    Args:
        functions: the functions by name; called without arguments.
        rounds: number of slices of each function.
        budget: seconds for all functions; at least three rounds are run. A function whose single call takes longer than
            a quarter of a second has its first call as its only sample.
        before_each: called, untimed, before each call (then a slice is one call): a cache flush.
    """
    slices = time_slices(functions, rounds=rounds, budget=budget, before_each=before_each)
    return InterleavedTimes(slices.seconds, slices.disturbed)


def compare(
    functions: Mapping[str, Callable[[], object]],
    work: Work,
    *,
    threads: int = 1,
    cold: bool = False,
    rounds: int = 15,
    limits: Roofs | None = None,
) -> dict[str, Timing]:
    """Time functions with the same work: alternately on one thread, one after the other with several threads.

    Args:
        functions: the functions by name.
        work: work of each function.
        threads: number of threads that they use.
        cold: whether to evict the caches before each call.
        rounds: number of slices of each function.
        limits: limits of the device that the functions run on; by default those of this machine with `threads` threads.
    """
    known = machine.roofs(threads) if limits is None else limits
    flush = machine.flush_caches if cold else None
    samples: dict[str, tuple[float, ...]] = {}
    disturbed: dict[str, float] = {}
    together = [dict(functions)] if threads == 1 else [{name: function} for name, function in functions.items()]
    with limit_threads(threads):
        for some in together:
            if threads > 1:
                time.sleep(machine.REST_SECONDS)
            slices = time_slices(some, rounds=rounds, before_each=flush, threads=threads)
            samples |= slices.seconds
            disturbed |= slices.disturbed
    roof = known.binding(work.flops, work.bytes, work.dtype, cold=cold)
    if limits is None and any(statistics.median(seconds) < roof.seconds for seconds in samples.values()):
        roof = machine.probe_again(threads).binding(work.flops, work.bytes, work.dtype, cold=cold)
    return {name: Timing(seconds, work, threads, cold, roof, disturbed[name]) for name, seconds in samples.items()}


@explained
def ratio(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Return the time of `first` relative to `second`: (low quartile, median, high quartile) over the rounds."""
    between = statistics.median(first) / statistics.median(second)
    ratios = sorted(a / b for a, b in zip(first, second, strict=False))
    if len(ratios) < 2:
        return (between, between, between)
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return (between, min(low, between), max(high, between))
