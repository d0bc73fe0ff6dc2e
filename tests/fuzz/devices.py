"""Random kernels for devices: programs whose loops are bound to blocks and threads.

Tiles in shared memory that threads fetch together, vectors, double buffers, software pipelines, private memory, virtual
threads, reductions across threads; extents are odd. NumPy says what a program computes. The scheduled program, what
passes make of it, and the kernel on an OpenCL device have to compute the same. Values are small integers, so that sums
are exact in any order.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as tw
from fuzz.judge import Finding
from tilewright import _core, ir, script

#: of the elements; sums of small integers are exact in all of them
TYPES = ["float32", "float32", "float64", "int32", "int64", "int16", "uint8"]
#: threads of a block at most
MOST_THREADS = 256
TARGET = "opencl"
#: how the text of a finding begins
MARK = "# fuzz.devices.judge("


@dataclass
class Program:
    """A program, its arguments, the result last, and what NumPy computes of the others."""

    text: str
    arguments: list[np.ndarray]
    expected: np.ndarray


class Drawing:
    """A program and its schedule, from a number."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)
        self.threads = 1
        self.axes: dict[str, int] = {}

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ---- programs

    def program(self) -> Program:
        dtype = self.rng.choice(TYPES)
        kinds = [self.product, self.rows, self.stencil, self.chain]
        text, shapes, result, by_numpy = self.rng.choice(kinds)(dtype)
        values = np.random.default_rng(self.rng.randrange(2**31))
        low = 0 if dtype.startswith("u") else -2
        inputs = [values.integers(low, 3, shape).astype(dtype) for shape in shapes]
        expected = np.ascontiguousarray(by_numpy(*inputs)).astype(dtype)
        return Program(text, [*inputs, np.full(result, 77, dtype)], expected)

    def sizes(self, count: int, most: int = 40) -> list[int]:
        return [self.rng.randint(1, most) for _ in range(count)]

    def product(self, dtype: str) -> tuple[str, list[Any], Any, Callable[..., np.ndarray]]:
        m, n, k = self.sizes(3)
        text = f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{dtype}"), B: T.Buffer(({k}, {n}), "{dtype}"), R: T.Buffer(({m}, {n}), "{dtype}")):
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("R"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                R[vi, vj] = T.{dtype}(0)
            R[vi, vj] = R[vi, vj] + A[vi, vk] * B[vk, vj]
"""
        return text, [(m, k), (k, n)], (m, n), lambda a, b: a @ b

    def rows(self, dtype: str) -> tuple[str, list[Any], Any, Callable[..., np.ndarray]]:
        m, k = self.sizes(2, 70)
        operation, start, by_numpy = self.rng.choice(
            [
                ("R[vi] + A[vi, vk]", f"T.{dtype}(0)", lambda a: a.sum(1, dtype=a.dtype)),
                ("T.max(R[vi], A[vi, vk])", f'T.min_value("{dtype}")', lambda a: a.max(1)),
                ("T.min(R[vi], A[vi, vk])", f'T.max_value("{dtype}")', lambda a: a.min(1)),
            ]
        )
        text = f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{dtype}"), R: T.Buffer(({m},), "{dtype}")):
    for i, k in T.grid({m}, {k}):
        with T.block("R"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                R[vi] = {start}
            R[vi] = {operation}
"""
        return text, [(m, k)], (m,), by_numpy

    def stencil(self, dtype: str) -> tuple[str, list[Any], Any, Callable[..., np.ndarray]]:
        m, width = self.rng.randint(1, 90), self.rng.randint(1, 4)
        stride = self.rng.randint(1, 3)
        n = (m - 1) * stride + width
        text = f"""
@T.prim_func
def main(A: T.Buffer(({n},), "{dtype}"), B: T.Buffer(({width},), "{dtype}"), R: T.Buffer(({m},), "{dtype}")):
    for i, k in T.grid({m}, {width}):
        with T.block("R"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                R[vi] = T.{dtype}(0)
            R[vi] = R[vi] + A[vi * {stride} + vk] * B[vk]
"""

        def by_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            windows = np.lib.stride_tricks.sliding_window_view(a, width)[::stride]
            return (windows * b).sum(1, dtype=a.dtype)

        return text, [(n,), (width,)], (m,), by_numpy

    def chain(self, dtype: str) -> tuple[str, list[Any], Any, Callable[..., np.ndarray]]:
        m, n = self.sizes(2)
        whole, mirrored = slice(None), slice(None, None, -1)
        read, at = self.rng.choice(
            [
                ("vi, vj", (whole, whole)),
                (f"{m - 1} - vi, vj", (mirrored, whole)),
                (f"vi, {n - 1} - vj", (whole, mirrored)),
            ]
        )
        text = f"""
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "{dtype}"), R: T.Buffer(({m}, {n}), "{dtype}")):
    S = T.alloc_buffer(({m}, {n}), "{dtype}")
    for i, j in T.grid({m}, {n}):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj] + T.{dtype}(1)
    for i, j in T.grid({m}, {n}):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = S[{read}] * T.{dtype}(2)
"""
        one, two = np.dtype(dtype).type(1), np.dtype(dtype).type(2)
        return text, [(m, n)], (m, n), lambda a: ((a + one) * two)[at]

    # ---- schedules

    def step(self, what: str, action: Callable[[], Any], counts: Counter[str]) -> Any:
        """A step that may be refused."""
        try:
            result = action()
        except tw.ScheduleError as error:
            counts[f"devices: {what} refused by {error.code}"] += 1
            return None
        counts[f"devices: {what}"] += 1
        return result

    def factor(self, most: int) -> int:
        return self.rng.choice([f for f in (1, 2, 3, 4, 5, 7, 8, 16, 32) if f <= max(most, 1)])

    def take_threads(self, axis: str) -> int:
        """How many threads of an axis a loop gets: as many as others of the kernel, if there are."""
        if axis not in self.axes:
            self.axes[axis] = self.factor(MOST_THREADS // self.threads)
            self.threads *= self.axes[axis]
        return self.axes[axis]

    def tile(self, sch: tw.Schedule, counts: Counter[str]) -> list[Any]:
        """Tiles the loops of R, and binds them. Returns loops below which copies can be made, outermost first."""
        loops = sch.get_loops("R")
        reduces = sch.get(sch.get_block("R")).init is not None
        spatial, reduced = (loops[:-1], loops[-1:]) if reduces else (loops, [])
        if len(spatial) > 1 and self.chance(0.3):
            spatial = [sch.fuse(*spatial)]
        outer, virtual, inner, serial = [], [], [], []
        across = bool(reduced) and self.chance(0.35)
        for number, loop in enumerate(spatial):
            dimension = "xyz"[len(spatial) - 1 - number]
            axis = f"threadIdx.{'yzz'['xyz'.index(dimension)] if across else dimension}"
            has_virtual = self.chance(0.2)
            factors = [None, 2 if has_virtual else 1, self.take_threads(axis), self.factor(4)]
            b, v, t, s = sch.split(loop, factors)
            outer.append((b, f"blockIdx.{dimension}"))
            virtual.append((v, f"vthread.{dimension}" if has_virtual else ""))
            inner.append((t, axis))
            serial.append(s)
        below = []
        if across:
            k, t = sch.split(reduced[0], [None, self.take_threads("threadIdx.x")])
            sch.reorder(*(loop for loop, _ in outer + virtual + inner), *serial, k, t)
            self.step("bind a reduction", lambda: sch.bind(t, "threadIdx.x"), counts)
        elif reduced:
            k0, k1 = sch.split(reduced[0], [None, self.factor(8)])
            sch.reorder(*(loop for loop, _ in outer + virtual + inner), k0, k1, *serial)
            below = [k0, k1]
        else:
            sch.reorder(*(loop for loop, _ in outer + virtual + inner), *serial)
            below = serial[:1]
        for loop, axis in outer + virtual + inner:
            if axis:
                self.step("bind", lambda loop=loop, axis=axis: sch.bind(loop, axis), counts)
        last = serial[-1]
        if not across and self.chance(0.4):
            how = self.rng.choice([sch.vectorize, sch.unroll])
            self.step(how.__name__, lambda: how(last), counts)
        return [inner[-1][0], *below]

    def fetch(self, sch: tw.Schedule, copy: Any, counts: Counter[str]) -> None:
        """The threads make the copy together."""
        loops = sch.get_loops(copy)
        own = []
        for loop in reversed(loops):
            if sch.get(loop).thread_binding or len(sch.get_child_blocks(loop)) > 1:
                break
            own.insert(0, loop)
        if not own:
            return
        fused = self.step("fuse a copy", lambda: sch.fuse(*own), counts) if len(own) > 1 else own[0]
        if fused is None:
            return
        lanes = self.rng.choice([1, 1, 2, 4])
        axes = [axis for axis in ("threadIdx.z", "threadIdx.y", "threadIdx.x") if axis in self.axes]
        parts = self.step(
            "split a copy", lambda: sch.split(fused, [None, *(self.axes[axis] for axis in axes), lanes]), counts
        )
        if parts is None:
            return
        for loop, axis in zip(parts[1:-1], axes, strict=True):
            self.step("bind a copy", lambda loop=loop, axis=axis: sch.bind(loop, axis), counts)
        if lanes > 1:
            self.step("vectorize a copy", lambda: sch.vectorize(parts[-1]), counts)

    def copies(self, sch: tw.Schedule, below: list[Any], counts: Counter[str]) -> int:
        """Copies of what R reads, at a loop. Returns how many there are at the loop over tiles of the reduction."""
        reads = len(sch.get(sch.get_block("R")).reads)
        made = 0
        for number in range(reads):
            if not self.chance(0.6):
                continue
            scope = self.rng.choice(["shared", "shared", "shared.dyn", "local"])
            read = [r for r in range(reads) if sch.get(sch.get_block("R")).reads[r].buffer.name not in ("R", "R_local")]
            if number >= len(read):
                continue
            copy = self.step("cache_read", lambda at=read[number], scope=scope: sch.cache_read("R", at, scope), counts)
            if copy is None:
                continue
            loop = self.rng.choice(below)
            placed = self.step(
                "compute_at",
                lambda copy=copy, loop=loop: (sch.compute_at(copy, loop, preserve_unit_loops=True), 1),
                counts,
            )
            if placed and scope != "local":
                made += len(below) > 1 and loop is below[1]
                self.fetch(sch, copy, counts)
                if self.chance(0.2):
                    self.step(
                        "double buffer", lambda copy=copy: (sch.annotate(copy, "double_buffer_scope", 0), 1), counts
                    )
                elif self.chance(0.2):
                    self.step("storage_align", lambda copy=copy: (sch.storage_align(copy, 0, -2, 8, 1), 1), counts)
        return made

    def place_stage(self, sch: tw.Schedule, below: list[Any], counts: Counter[str]) -> None:
        """The first block of a chain is inlined, or computed at a loop of the second one."""
        scope, loop = self.rng.choice(["shared", "local", "shared.dyn"]), self.rng.choice(below)
        inlines = self.chance(0.3)
        if inlines or not self.step(
            "compute_at", lambda: (sch.compute_at("S", loop, preserve_unit_loops=True), 1), counts
        ):
            self.step("compute_inline", lambda: (sch.compute_inline("S"), 1), counts)
            return
        placed = self.step("set_scope", lambda: (sch.set_scope("S", 0, scope), 1), counts)
        if placed and scope != "local":
            self.fetch(sch, sch.get_block("S"), counts)

    def schedule(self, func: ir.PrimFunc, counts: Counter[str]) -> tw.Schedule:
        sch = tw.Schedule(func)
        has_stage = "S" in {sch.get(block).name_hint for block in sch.get_child_blocks("root")}
        below = self.tile(sch, counts)
        if len(below) > 1 and self.chance(0.5):
            local = self.step("cache_write", lambda: sch.cache_write("R", 0, "local"), counts)
            if local is not None:
                self.step(
                    "reverse_compute_at",
                    lambda: (sch.reverse_compute_at(local, below[0], preserve_unit_loops=True), 1),
                    counts,
                )
        if has_stage:
            self.place_stage(sch, below, counts)
        made = self.copies(sch, below, counts)
        if made and self.chance(0.6):
            stages = [*([0] * made), self.rng.choice([1, 1, 2, 3])]
            order = list(range(made + 1))
            if self.chance(0.3):
                order = order[::-1]
            sch.annotate(below[1], "software_pipeline_stage", stages)
            sch.annotate(below[1], "software_pipeline_order", order)
            if self.chance(0.4):
                sch.annotate(below[1], "software_pipeline_async_stages", [0])
            counts["devices: pipelines"] += 1
        if len(below) > 1 and self.chance(0.3):
            self.step("decompose_reduction", lambda: sch.decompose_reduction("R", below[1]), counts)
        return sch


def text_of(number: int) -> str:
    """What stands for the kernel of a number in findings."""
    _, sch = drawn(number, Counter())
    return f"{MARK}{number})\n{sch.mod.script()}"


def drawn(number: int, counts: Counter[str]) -> tuple[Program, tw.Schedule]:
    """A program and its schedule."""
    drawing = Drawing(number)
    program = drawing.program()
    func = script.from_source(program.text)
    return program, drawing.schedule(func, counts)


def judge(number: int, counts: Counter[str] | None = None, *, every_pass: bool | None = None) -> None:
    """Compare all ways to run a kernel.

    Args:
        number: of the program.
        counts: of what was done.
        every_pass: also interpret what each pass makes of it; by default for one program of four.

    Raises:
        Finding: two of them differ, or something fails that must not.
    """
    counts = Counter() if counts is None else counts
    program, sch = drawn(number, counts)
    text = f"{MARK}{number})\n{sch.mod.script()}"

    def run(what: str, call: Callable[[list[np.ndarray]], Any]) -> None:
        arrays = [array.copy() for array in program.arguments]
        try:
            call(arrays)
        except tw.Error as error:
            raise Finding(f"devices: {what}: {error.code}", f"{error}\n{text}") from error
        if not np.array_equal(arrays[-1], program.expected):
            raise Finding(f"devices: {what}", f"{arrays[-1]}\ninstead of\n{program.expected}\n{text}")

    run("interpreter", lambda arrays: _core.interpret(sch.mod, "main", *arrays))
    try:
        stages = list(_core.lower_stages(sch.mod, TARGET))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tw.PerformanceWarning)
            kernel = tw.compile(sch, target=TARGET)
    except tw.InternalError as error:
        raise Finding(f"devices: lowering: {error.code}", f"{error}\n{text}") from error
    except tw.Error as error:
        counts[f"devices: refused by {error.code}"] += 1
        return
    for name, module in stages if every_pass or (every_pass is None and number % 4 == 0) else stages[-1:]:
        run(f"after {name}", lambda arrays, module=module: _core.interpret(module, "main", *arrays))
    run("kernel", lambda arrays: kernel(*arrays))
    counts["devices: kernels"] += 1
