"""Time of schedule primitives, of replay, and how it grows with the program.

    python benchmarks/schedule.py [--peer PYTHON] [--rounds 9] [--chain 10 40 100 500]

Each step runs on programs that nothing has looked at yet: parsed anew, scheduled up to the step, then timed once; a
round takes the median of several. What counts is processor time, so that other programs on the machine matter less.
With the interpreter of an environment that has `apache-tvm` (see peer.py), rounds of both sides alternate; printed are
medians of the rounds, and the ratio with the middle half of its values.

`in a row`: replays follow one another, each on a program of its own that nothing has looked at, as in a search; else
the program is parsed in between, and the code and the data of a replay have left the caches.

`inline each of N blocks` is the time per step in a chain of that many elementwise blocks, all but the last inlined from
the first on: it shows whether a step pays for what it touches or for the whole program. What is inlined grows with each
step. `in a row`: of several such chains, whose blocks have been looked up, one after another.

Memory is that of one schedule among a thousand that live, each of which has replayed the tiling of the same product.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from peer import Peer, quartiles, serve

PRODUCT = """\
@{decorator}
def main(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"), C: T.Buffer((512, 512), "float32")):
    for i, j, k in T.grid(512, 512, 512):
        with T.{block}("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

CONV2D = """\
@{decorator}
def main(
    X: T.Buffer((1, 56, 56, 64), "float32"), W: T.Buffer((3, 3, 64, 64), "float32"),
    b: T.Buffer((64,), "float32"), Y: T.Buffer((1, 56, 56, 64), "float32"),
):
    P = T.{alloc}((1, 58, 58, 64))
    C = T.{alloc}((1, 56, 56, 64))
    D = T.{alloc}((1, 56, 56, 64))
    for n, h, w, c in T.grid(1, 58, 58, 64):
        with T.{block}("pad"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(
                1 <= vh and vh < 57 and 1 <= vw and vw < 57, X[vn, vh - 1, vw - 1, vc], T.float32(0)
            )
    for n, h, w, o, r, s, c in T.grid(1, 56, 56, 64, 3, 3, 64):
        with T.{block}("conv"):
            vn, vh, vw, vo, vr, vs, vc = T.axis.remap("SSSSRRR", [n, h, w, o, r, s, c])
            with T.init():
                C[vn, vh, vw, vo] = T.float32(0)
            C[vn, vh, vw, vo] = C[vn, vh, vw, vo] + P[vn, vh + vr, vw + vs, vc] * W[vr, vs, vc, vo]
    for n, h, w, o in T.grid(1, 56, 56, 64):
        with T.{block}("bias"):
            vn, vh, vw, vo = T.axis.remap("SSSS", [n, h, w, o])
            D[vn, vh, vw, vo] = C[vn, vh, vw, vo] + b[vo]
    for n, h, w, o in T.grid(1, 56, 56, 64):
        with T.{block}("relu"):
            vn, vh, vw, vo = T.axis.remap("SSSS", [n, h, w, o])
            Y[vn, vh, vw, vo] = T.max(D[vn, vh, vw, vo], T.float32(0))
"""


def chain(blocks: int) -> str:
    """B0 = A + 1, B1 = B0 + 1, ...: as many blocks."""
    allocations = [f"    B{k} = T.{{alloc}}((128, 128))\n" for k in range(blocks - 1)]
    lines = []
    for k in range(blocks):
        source, target = "A" if k == 0 else f"B{k - 1}", "C" if k == blocks - 1 else f"B{k}"
        lines.append(
            f"    for i{k}, j{k} in T.grid(128, 128):\n"
            f'        with T.{{block}}("block{k}"):\n'
            f'            vi, vj = T.axis.remap("SS", [i{k}, j{k}])\n'
            f"            {target}[vi, vj] = {source}[vi, vj] + T.float32(1)\n"
        )
    head = '@{decorator}\ndef main(A: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):\n'
    return head + "".join(allocations) + "".join(lines)


def tile_product(sch: Any, side: Side) -> None:
    """The multi-level tiling of a product on a CPU."""
    block = side.block(sch, "C")
    i, j, k = sch.get_loops(block)
    i_0, i_1, i_2, i_3 = sch.split(i, [4, 4, 4, 8])
    j_0, j_1, j_2, j_3 = sch.split(j, [2, 4, 4, 16])
    k_0, k_1 = sch.split(k, [128, 4])
    sch.reorder(i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3)
    copy = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(copy, j_1)
    outer = sch.fuse(i_0, j_0)
    sch.parallel(outer)
    sch.vectorize(j_3)
    sch.unroll(i_3)
    sch.decompose_reduction(block, k_0)
    sch.annotate(outer, "pragma_auto_unroll_max_step", 64)


def tile_conv2d(sch: Any, side: Side) -> None:
    """Tile a padded convolution with bias and relu: padding and bias inlined, relu in the tile."""
    conv, relu = side.block(sch, "conv"), side.block(sch, "relu")
    sch.compute_inline(side.block(sch, "pad"))
    sch.compute_inline(side.block(sch, "bias"))
    _, h, w, o, r, s, c = sch.get_loops(conv)
    h_0, h_1 = sch.split(h, [14, 4])
    w_0, w_1 = sch.split(w, [8, 7])
    o_0, o_1 = sch.split(o, [4, 16])
    c_0, c_1 = sch.split(c, [16, 4])
    sch.reorder(h_0, w_0, o_0, c_0, r, s, c_1, h_1, w_1, o_1)
    sch.reverse_compute_at(relu, o_0)
    outer = sch.fuse(h_0, w_0)
    sch.parallel(outer)
    sch.vectorize(o_1)
    sch.decompose_reduction(conv, c_0)


def sketch_cuda(sch: Any, side: Side) -> None:
    """The multi-level tiling of a product on a GPU: local accumulators, operands fetched together to shared memory."""
    block = side.block(sch, "C")
    write = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i_0, i_1, i_2, i_3, i_4 = sch.split(i, [8, 2, 8, 2, 2])
    j_0, j_1, j_2, j_3, j_4 = sch.split(j, [8, 2, 16, 1, 2])
    k_0, k_1, k_2 = sch.split(k, [64, 4, 2])
    sch.reorder(i_0, j_0, i_1, j_1, i_2, j_2, k_0, k_1, i_3, j_3, k_2, i_4, j_4)
    sch.bind(sch.fuse(i_0, j_0), "blockIdx.x")
    sch.bind(sch.fuse(i_1, j_1), "vthread.x")
    threads = sch.fuse(i_2, j_2)
    sch.bind(threads, "threadIdx.x")
    sch.reverse_compute_at(write, threads, preserve_unit_loops=True)
    for operand in (0, 1):
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, k_0, preserve_unit_loops=True)
        fetched = sch.fuse(*sch.get_loops(copy)[-2:])
        _, thread = sch.split(fetched, [None, 128])
        sch.bind(thread, "threadIdx.x")
    sch.decompose_reduction(block, k_0)


class Subject(NamedTuple):
    """A program, and the blocks in it that steps are taken on."""

    text: str
    block: str
    axes: int
    producer: str = ""
    consumer: str = ""
    inlined: str = ""  #: into its producer


SUBJECTS = {
    "product": Subject(PRODUCT, "C", 3),
    "conv2d": Subject(CONV2D, "conv", 7, "pad", "bias", "relu"),
    "chain of 40": Subject(chain(40), "block20", 2, "block19", "block21", "block21"),
}
Prepare = Callable[["Any", "Side", Subject], Any]
Act = Callable[[Any, Any], Any]


def loops(sch: Any, side: Side, on: Subject) -> Any:
    return sch.get_loops(side.block(sch, on.block))


def block(sch: Any, side: Side, on: Subject) -> Any:
    return side.block(sch, on.block)


def producer(sch: Any, side: Side, on: Subject) -> Any:
    return side.block(sch, on.producer)


def consumer(sch: Any, side: Side, on: Subject) -> Any:
    return side.block(sch, on.consumer)


def producer_and_loop(sch: Any, side: Side, on: Subject) -> Any:
    return producer(sch, side, on), loops(sch, side, on)[0]


def consumer_and_loop(sch: Any, side: Side, on: Subject) -> Any:
    return consumer(sch, side, on), loops(sch, side, on)[0]


def reduction(sch: Any, side: Side, on: Subject) -> Any:
    """The block and the outermost loop of its reduction."""
    return block(sch, side, on), loops(sch, side, on)[2 if on.block == "C" else 4]


def annotated(sch: Any, side: Side, on: Subject) -> Any:
    loop = loops(sch, side, on)[0]
    sch.annotate(loop, "key", 1)
    return loop


ALL = ("product", "conv2d", "chain of 40")
#: Of a primitive: the programs, what is done before the step (its result is passed on), the step.
PRIMITIVES: dict[str, tuple[tuple[str, ...], Prepare, Act]] = {
    "get_block": (ALL, lambda sch, side, on: (side, on.block), lambda sch, given: given[0].block(sch, given[1])),
    "get_loops": (ALL, block, lambda sch, found: sch.get_loops(found)),
    "get_producers": (ALL, block, lambda sch, found: sch.get_producers(found)),
    "get_consumers": (ALL, block, lambda sch, found: sch.get_consumers(found)),
    "sample_perfect_tile": (ALL, loops, lambda sch, found: sch.sample_perfect_tile(found[1], 4)),
    "sample_categorical": (ALL, block, lambda sch, _: sch.sample_categorical([1, 2, 4], [0.3, 0.3, 0.4])),
    "sample_compute_location": (ALL, block, lambda sch, found: sch.sample_compute_location(found)),
    "split": (ALL, loops, lambda sch, found: sch.split(found[1], [None, 8])),
    "split with a tail": (ALL, loops, lambda sch, found: sch.split(found[1], [None, 5])),
    "loop_partition": (ALL, loops, lambda sch, found: sch.loop_partition(found[1], [5, None])),
    "fuse": (ALL, loops, lambda sch, found: sch.fuse(*found[:2])),
    "reorder": (ALL, loops, lambda sch, found: sch.reorder(*reversed(found))),
    "reorder_block_iter_var": (
        ALL,
        lambda sch, side, on: (block(sch, side, on), [1, 0, *range(2, on.axes)]),
        lambda sch, found: sch.reorder_block_iter_var(*found),
    ),
    "add_unit_loop": (ALL, loops, lambda sch, found: sch.add_unit_loop(found[0])),
    "parallel": (ALL, loops, lambda sch, found: sch.parallel(found[0])),
    "vectorize": (ALL, loops, lambda sch, found: sch.vectorize(found[1])),
    "unroll": (ALL, loops, lambda sch, found: sch.unroll(found[1])),
    "bind": (ALL, loops, lambda sch, found: sch.bind(found[0], "blockIdx.x")),
    "annotate": (ALL, loops, lambda sch, found: sch.annotate(found[0], "key", 1)),
    "unannotate": (ALL, annotated, lambda sch, found: sch.unannotate(found, "key")),
    "cache_read": (ALL, block, lambda sch, found: sch.cache_read(found, 0, "global")),
    "cache_write": (ALL, block, lambda sch, found: sch.cache_write(found, 0, "global")),
    "reindex": (ALL, block, lambda sch, found: sch.reindex(found, ("write", 0))),
    "transform_layout": (
        ALL,
        block,
        lambda sch, found: sch.transform_layout(found, ("write", 0), lambda *at: [*at[:-1], at[-1] // 4, at[-1] % 4]),
    ),
    "transform_block_layout": (
        ("product", "chain of 40"),
        block,
        lambda sch, found: sch.transform_block_layout(found, lambda i, *rest: [i // 4, i % 4, *rest]),
    ),
    "storage_align": (ALL[1:], block, lambda sch, found: sch.storage_align(found, 0, -2, 32, 8)),
    "set_scope": (ALL[1:], block, lambda sch, found: sch.set_scope(found, 0, "shared")),
    "blockize": (ALL, loops, lambda sch, found: sch.blockize(found[1])),
    "compute_at": (ALL[1:], producer_and_loop, lambda sch, found: sch.compute_at(*found)),
    "reverse_compute_at": (ALL[1:], consumer_and_loop, lambda sch, found: sch.reverse_compute_at(*found)),
    "compute_inline": (ALL[1:], producer, lambda sch, found: sch.compute_inline(found)),
    "reverse_compute_inline": (
        ALL[1:],
        lambda sch, side, on: side.block(sch, on.inlined),
        lambda sch, found: sch.reverse_compute_inline(found),
    ),
    "decompose_reduction": (ALL[:2], reduction, lambda sch, found: sch.decompose_reduction(*found)),
    "rfactor": (ALL[:2], reduction, lambda sch, found: sch.rfactor(found[1], 0)),
    "pad_einsum": (("product",), block, lambda sch, found: sch.pad_einsum(found, [96, 96, 96])),
    "decompose_padding": (
        ("conv2d",),
        lambda sch, side, on: (producer(sch, side, on), sch.get_loops(producer(sch, side, on))[1]),
        lambda sch, found: sch.decompose_padding(*found),
    ),
}
#: Name: the subject, and the primitive.
STEPS = {
    f"{subject}: {name}": (SUBJECTS[subject], prepare, act)
    for subject in ALL
    for name, (subjects, prepare, act) in PRIMITIVES.items()
    if subject in subjects
}
REPLAYS = {
    "product: replay of its tiling": (PRODUCT, tile_product),
    "conv2d: replay of its tiling": (CONV2D, tile_conv2d),
    "product: replay of its CUDA sketch": (PRODUCT, sketch_cuda),
}
#: The same, one after another on programs that are ready: as a search does it, whose code is in the caches.
IN_A_ROW = {f"{name}, in a row": how for name, how in REPLAYS.items()}
MEMORY = "a tiled product that lives"


def resident() -> float:
    """KiB of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**10


class Side:
    """The parts of the benchmark that differ between Tilewright and its peer."""

    def __init__(self, *, peer: bool) -> None:
        if peer:
            from tvm.s_tir import Schedule
            from tvm.script import from_source

            self.words = {"block": "sblock", "alloc": "sblock_alloc_buffer", "decorator": "T.prim_func(s_tir=True)"}
            self.parse, self.schedule = from_source, Schedule
            self.block = lambda sch, name: sch.get_sblock(name)
        else:
            import tilewright as tw

            self.words = {"block": "block", "alloc": "alloc_buffer", "decorator": "T.prim_func"}
            self.parse, self.schedule = tw.script.from_source, tw.Schedule
            self.block = lambda sch, name: sch.get_block(name)

    def fresh(self, text: str) -> Any:
        return self.schedule(self.parse(text.format(**self.words)), seed=1)

    def measure(self, name: str) -> float | None:
        """Seconds of a step, of a replay, or per block of a chain, or KiB. None where a side refuses the step."""
        if name.startswith("inline each of "):
            return self._inline_all(int(name.split()[3]), in_a_row=name.endswith("in a row"))
        if name == MEMORY:
            return self._memory()
        if name in IN_A_ROW:
            return self._replay(*IN_A_ROW[name], in_a_row=True)
        if name in REPLAYS:
            return self._replay(*REPLAYS[name])
        subject, prepare, act = STEPS[name]
        spent = []
        for _ in range(5):
            sch = self.fresh(subject.text)
            given = prepare(sch, self, subject)
            start = time.process_time()
            try:
                act(sch, given)
            except Exception:
                return None
            spent.append(time.process_time() - start)
        return statistics.median(spent)

    def _replay(self, text: str, schedule: Callable[[Any, Side], None], *, in_a_row: bool = False) -> float:
        recorded = self.fresh(text)
        schedule(recorded, self)
        count = 20
        ready = [self.fresh(text) for _ in range(count)] if in_a_row else []
        spent = []
        for _ in range(count):
            sch = ready.pop() if in_a_row else self.fresh(text)
            start = time.process_time()
            recorded.trace.apply_to_schedule(sch, remove_postproc=False)
            spent.append(time.process_time() - start)
        return statistics.median(spent)

    def _memory(self) -> float:
        """KiB that a schedule of a tiled product takes, of a thousand that live at the same time."""
        recorded = self.fresh(PRODUCT)
        tile_product(recorded, self)
        program, living = recorded.trace, []
        module = self.parse(PRODUCT.format(**self.words))
        for _ in range(100):  # memory that is allocated once
            living.append(self.schedule(module, seed=1))
            program.apply_to_schedule(living[-1], remove_postproc=False)
        before = resident()
        for _ in range(1000):
            living.append(self.schedule(module, seed=1))
            program.apply_to_schedule(living[-1], remove_postproc=False)
        return (resident() - before) / 1000

    def _inline_all(self, blocks: int, *, in_a_row: bool) -> float:
        ready = [self.fresh(chain(blocks)) for _ in range(max(3, 200 // blocks) if in_a_row else 1)]
        found = [[self.block(sch, f"block{k}") for k in range(blocks - 1)] for sch in ready]
        spent = []
        for sch, producers in zip(ready, found, strict=True):
            start = time.process_time()
            for block in producers:
                sch.compute_inline(block)
            spent.append((time.process_time() - start) / len(producers))
        return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python of an environment with apache-tvm")
    parser.add_argument("--rounds", type=int, default=9, help="how often each step is measured (at least 2)")
    parser.add_argument("--chain", type=int, nargs="*", default=(10, 40, 100, 500), help="blocks of the chains")
    parser.add_argument("--only", default="", help="what the names of steps contain")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    side = Side(peer=options.serve)
    if options.serve:
        serve(side.measure)
        return
    other = Peer(options.peer, __file__) if options.peer else None
    chains = [f"inline each of {n} blocks{how}" for how in ("", ", in a row") for n in options.chain]
    names = [*STEPS, *REPLAYS, *IN_A_ROW, *chains, MEMORY]
    print(f"{'':44}{'us':>10}" + (f"{'peer us':>12}{'ratio':>8}{'':4}half of them" if other else ""))
    for name in names:
        if options.only not in name:
            continue
        own, theirs = [], []
        for _ in range(1 if name == MEMORY else options.rounds):
            own.append(side.measure(name))
            if other:
                theirs.append(other.measure(name))
        print(row(name, own, theirs), flush=True)


def row(name: str, own: list[float | None], theirs: list[float | None]) -> str:
    """A line of the table: in microseconds, or KiB."""
    unit = 1 if name == MEMORY else 1e6

    def column(values: list[float | None], width: int) -> str:
        known = [value for value in values if value is not None]
        return f"{statistics.median(known) * unit:>{width}.1f}" if known else f"{'refused':>{width}}"

    text = f"{name + (', KiB' if name == MEMORY else ''):44}{column(own, 10)}"
    if not theirs:
        return text
    text += column(theirs, 12)
    pairs = [(a, b) for a, b in zip(theirs, own, strict=True) if a is not None and b is not None]
    if len(pairs) == 1:
        return text + f"{pairs[0][0] / pairs[0][1]:>8.1f}"
    if pairs:
        low, middle, high = quartiles(*zip(*pairs, strict=True))
        text += f"{middle:>8.1f}    {low:.1f} to {high:.1f}"
    return text


if __name__ == "__main__":
    main()
