"""How long kernels take, and which limit of the machine that is close to.

Functions that are compared on one thread are timed alternately within one run (slices of a few milliseconds, A B C A B
C ...), because the speed of a machine drifts; medians and quartiles are over slices, without those in which other
programs took a processor away. Where too few are left, what counts of these is how long the thread had its processor.
With several threads each has the machine to itself for all its slices: threads that another library leaves spinning
would be timed with it. Kernels of ours are called from C++ in a row (:class:`KernelCalls`), so that their times are
theirs and not Python's.
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
    """What one call computes and moves.

    Attributes:
        flops: floating-point operations (a multiply-add is two).
        bytes: compulsory traffic: each parameter read plus each one written, once.
        dtype: the type that the operations are in.
        exact: False when a size was only estimated; numbers made from it are marked with ``~``.
    """

    flops: float
    bytes: float
    dtype: str = "float32"
    exact: bool = True


#: what is known of a program that nobody has
NO_WORK = Work(0, 0)


@dataclass(frozen=True)
class Timing:
    """Times of one kernel.

    Attributes:
        seconds: per call, one number a slice.
        work: what a call does.
        threads: that the kernel could use.
        cold: whether the caches held other data before each call.
        roof: the limit of the machine that binds, with the least time it allows.
        disturbed: share of the slices in which other programs took a processor away. Where enough slices were not,
            `seconds` are those alone.
    """

    seconds: tuple[float, ...]
    work: Work
    threads: int
    cold: bool
    roof: Roof
    disturbed: float = 0.0

    @property
    def median(self) -> float:
        """Seconds per call."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile, seconds per call."""
        if len(self.seconds) < 2:
            return (self.seconds[0], self.seconds[0])
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (low, high)

    @property
    def gflops(self) -> float:
        """1e9 floating-point operations per second, at the median."""
        return self.work.flops / self.median / 1e9

    @property
    def gbs(self) -> float:
        """1e9 bytes of compulsory traffic per second, at the median."""
        return self.work.bytes / self.median / 1e9

    @property
    def fraction(self) -> float:
        """Speed as a share of the roof that binds. 1 means that no faster kernel exists on this machine. More means
        that the roof was measured too low, twice, since something else ran."""
        return self.roof.seconds / self.median

    def __repr__(self) -> str:
        return f"<Timing {self}>"

    def table(self) -> Table:
        """The times and rates as a table, which is also what notebooks show."""
        low, high = self.quartiles
        cells = {"time": format_seconds(self.median), "middle half": f"{format_seconds(low)} to {format_seconds(high)}"}
        if self.work.flops:
            cells[machine.rate_unit(self.work.dtype)] = format_estimate(self.gflops, self.work)
        cells["GB/s"] = format_estimate(self.gbs, self.work)
        cells[f"of {self.roof.name}"] = format_share(self.fraction, self.work)
        title = f"{self.threads} thread{'' if self.threads == 1 else 's'}, {'cold' if self.cold else 'warm'} caches"
        title += company(self.disturbed)
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
            f"of {self.roof.name}{shared(self.disturbed)}"
        )


@explained
def shared(disturbed: float) -> str:
    """What other programs have to do with a time, by the share of the slices that they disturbed: ", contended", or how
    many slices; "" where these are hardly any."""
    if disturbed > MOSTLY:
        return company(disturbed)
    return f", {disturbed:.0%} of the slices disturbed" if disturbed > HARDLY else ""


@explained
def company(disturbed: float) -> str:
    """ ", alone" or ", contended", by the share of the slices that other programs disturbed; "" for between."""
    if disturbed > MOSTLY:
        return ", contended"
    return ", alone" if disturbed <= HARDLY else ""


#: shares of slices: what was disturbed more often was measured on a machine that others use, less often, alone
MOSTLY, HARDLY = 0.5, 0.1
#: slices that are enough to discard those that were disturbed
_ENOUGH = 3


@explained
def format_seconds(seconds: float) -> str:
    """Three digits and a unit: ``1.25 ms``."""
    if seconds >= 999.5:
        return f"{seconds:.0f} s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        digits = f"{seconds / scale:.3g}"
        if float(digits) >= 1:  # rounded: 999.9 us are 1 ms
            return f"{digits} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


@explained
def work_of_arrays(args: Sequence[object]) -> Work:
    """What is known of a call without its program: the bytes of its arrays; operations are given as none."""
    arrays = [arg for arg in args if hasattr(arg, "nbytes")]
    dtypes = [str(getattr(array, "dtype", "float32")).removeprefix("torch.") for array in arrays]
    floats = [dtype for dtype in dtypes if "float" in dtype]
    return Work(0.0, float(sum(int(array.nbytes) for array in arrays)), floats[0] if floats else "int32", exact=False)


@explained
def format_estimate(rate: float, work: Work) -> str:
    """A rate, marked with ``~`` where the work was estimated."""
    return f"{'' if work.exact else '~'}{rate:.1f}"


@explained
def format_share(fraction: float, work: Work) -> str:
    """A share of a roof in percent, marked with ``!`` above 100."""
    percent = round(100 * fraction)
    return f"{'' if work.exact else '~'}{percent} %{'!' if percent > 100 else ''}"


@contextlib.contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Tilewright's pool, and the pools of NumPy's BLAS and of OpenMP, use at most `threads` threads inside."""
    from threadpoolctl import threadpool_limits

    before = _core.get_num_threads()
    _core.set_num_threads(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        _core.set_num_threads(before)


#: a call that takes longer is not repeated to warm up, nor more often than needed
LONG_CALL_SECONDS = 0.25


class KernelCalls:
    """A kernel with its arguments, to be timed without what Python adds to a call."""

    @explained
    def __init__(self, kernel: Kernel, args: Sequence[Any]) -> None:
        self._kernel, self._args = kernel, tuple(args)

    def __call__(self) -> None:
        """One call, from Python."""
        self._kernel(*self._args)

    def spend(self, calls: int) -> float:
        """Seconds of so many calls in a row."""
        return _core.time_calls(self._kernel, calls, *self._args)


def _seconds_of(function: Callable[[], object], calls: int) -> float:
    if isinstance(function, KernelCalls):
        return function.spend(calls)
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - start


def _seconds_of_a_call(function: Callable[[], object]) -> float:
    """Roughly; also the warm-up."""
    calls = 1
    while True:
        spent = _seconds_of(function, calls)
        if spent >= SLICE_SECONDS / 2:
            return spent / calls
        calls *= 4


class InterleavedTimes(dict[str, tuple[float, ...]]):
    """Seconds per call by name, one number a round.

    Attributes:
        disturbed: by name, the share of the slices in which other programs took a processor away.
    """

    disturbed: Mapping[str, float]

    @explained
    def __init__(self, seconds: Mapping[str, tuple[float, ...]], disturbed: Mapping[str, float]) -> None:
        super().__init__(seconds)
        self.disturbed = disturbed

    def __str__(self) -> str:
        return "\n".join(
            f"{name}: {format_seconds(statistics.median(seconds))}{shared(self.disturbed[name])}"
            for name, seconds in self.items()
        )


@dataclass(frozen=True)
class Slices:
    """Seconds per call of functions that were timed alternately, one number a round, and the share of slices in which
    other programs took a processor away; where enough rounds went without that, `seconds` are those alone."""

    seconds: dict[str, tuple[float, ...]]
    disturbed: dict[str, float]


def _lost(threads: int) -> int:
    """How often other programs took the processor of the calling thread away, or of any thread of this process."""
    return resource.getrusage(resource.RUSAGE_SELF if threads > 1 else resource.RUSAGE_THREAD).ru_nivcsw


def _timed(function: Callable[[], object], calls: int, threads: int) -> tuple[float, float, bool]:
    """Seconds of so many calls in a row: those that count, and those that went by; and whether other programs took the
    processor away meanwhile. Then, of a function that works on the calling thread alone, those count in which it had
    it."""
    before, waited = _lost(threads), _waited() if threads > 1 else 0.0
    of_thread, of_all = time.thread_time(), time.process_time()
    seconds = _seconds_of(function, calls)
    of_thread, of_all = time.thread_time() - of_thread, time.process_time() - of_all
    without = seconds - of_thread if threads == 1 else _waited() - waited
    # The system itself takes a processor for some microseconds now and then.
    lost = _lost(threads) > before and not without <= _TAKEN * seconds
    alone = threads == 1 and of_all - of_thread < _OTHERS * of_thread
    return (min(seconds, of_thread) if lost and alone else seconds), seconds, lost


def _waited() -> float:
    """Seconds that threads of this process were ready to run and had no processor; infinity where that is unknown."""
    waited = 0
    try:
        for task in Path("/proc/self/task").iterdir():
            waited += int((task / "schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return math.inf
    return waited * 1e-9


#: share of a slice that other programs have to take before it counts as disturbed
_TAKEN = 0.01
#: share of the time of a thread that others of the process may take beside it, as Python's own do
_OTHERS = 0.05


@explained
def time_slices(
    functions: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    budget: float = 3.0,
    before_each: Callable[[], object] | None = None,
    threads: int = 1,
) -> Slices:
    """As :func:`time_interleaved`, and says what was disturbed.

    Args:
        functions: what to time, by name; called without arguments.
        rounds: how often each gets its turn.
        budget: seconds for all of it.
        before_each: called, untimed, before each call.
        threads: that the functions work on.
    """
    first: dict[str, tuple[float, bool]] = {}
    #: seconds of a call, of which a slice takes as many as fill it. The least of those seen: where other programs took
    #: the processor away, slices would be short, and rivals with long ones would be interrupted more often.
    least: dict[str, float] = {}
    for name, function in functions.items():
        before = _lost(threads)
        seconds = _seconds_of_a_call(function)
        lost = _lost(threads) > before
        if seconds > LONG_CALL_SECONDS:
            first[name] = (seconds, lost)
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
            seconds, passed, lost = _timed(functions[name], count, threads)
            done[-1][name] = (seconds / count, lost)
            least[name] = min(least[name], passed / count)
    quiet = [each for each in done if not any(lost for _, lost in each.values())]
    counted = quiet if len(quiet) >= _ENOUGH else done
    samples = {name: [first[name]] if name in first else [each[name] for each in done] for name in functions}
    return Slices(
        {name: (first[name][0],) if name in first else tuple(each[name][0] for each in counted) for name in functions},
        {name: sum(lost for _, lost in found) / max(len(found), 1) for name, found in samples.items()},
    )


def time_interleaved(
    functions: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    budget: float = 3.0,
    before_each: Callable[[], object] | None = None,
) -> InterleavedTimes:
    """Seconds per call of each function, one number a round; rounds in which other programs took the processor away are
    discarded where enough are left, and ``disturbed`` of what is returned says how many slices these were. Printed, it
    is the medians, marked where they were contended.

    Args:
        functions: what to time, by name; called without arguments.
        rounds: how often each gets its turn.
        budget: seconds for all of it; at least three rounds are done. A function whose single call takes longer than a
            quarter of a second has its first call as its only sample.
        before_each: called, untimed, before each call (then a slice is one call): a cache flush.
    """
    turns = time_slices(functions, rounds=rounds, budget=budget, before_each=before_each)
    return InterleavedTimes(turns.seconds, turns.disturbed)


def compare(
    functions: Mapping[str, Callable[[], object]],
    work: Work,
    *,
    threads: int = 1,
    cold: bool = False,
    rounds: int = 15,
    limits: Roofs | None = None,
) -> dict[str, Timing]:
    """Times functions that do the same work: alternately on one thread, one after the other with several.

    Args:
        functions: what to time, by name.
        work: of each.
        threads: that they work on.
        cold: evict the caches before each call.
        rounds: how often each is timed.
        limits: of the device that they run on; by default, those of so many threads of this machine.
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
            turns = time_slices(some, rounds=rounds, before_each=flush, threads=threads)
            samples |= turns.seconds
            disturbed |= turns.disturbed
    roof = known.binding(work.flops, work.bytes, work.dtype, cold=cold)
    if limits is None and any(statistics.median(seconds) < roof.seconds for seconds in samples.values()):
        roof = machine.probe_again(threads).binding(work.flops, work.bytes, work.dtype, cold=cold)
    return {name: Timing(seconds, work, threads, cold, roof, disturbed[name]) for name, seconds in samples.items()}


@explained
def ratio(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """How many times longer the first takes than the second: of the medians, and the middle half of the rounds."""
    between = statistics.median(first) / statistics.median(second)
    ratios = sorted(a / b for a, b in zip(first, second, strict=False))
    if len(ratios) < 2:
        return (between, between, between)
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return (between, min(low, between), max(high, between))
