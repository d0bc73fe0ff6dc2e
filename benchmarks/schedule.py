"""Time of schedule primitives, of replay, and how it grows with the program.

    python benchmarks/schedule.py [--peer PYTHON] [--rounds 9] [--chain 10 40 100 500]

Each step runs on programs that nothing has looked at yet: parsed anew, scheduled up to the step, then timed once; a
round takes the median of several. What counts is processor time, so that other programs on the machine matter less.
With the interpreter of an environment that has `apache-tvm` (see peer.py), rounds of both sides alternate; printed are
medians of the rounds, and the ratio with the middle half of its values.

`inline each of N blocks` is the time per step in a chain of that many elementwise blocks, all but the last inlined from
the first on: it shows whether a step pays for what it touches or for the whole program.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

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
    """The same for a padded convolution with bias and relu: padding and bias inlined, relu in the tile."""
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


def first_loop(block: str) -> Callable[[Any, Side], Any]:
    return lambda sch, side: sch.get_loops(side.block(sch, block))[0]


def blocks_of(*names: str) -> Callable[[Any, Side], Any]:
    return lambda sch, side: [side.block(sch, name) for name in names]


#: Name: the program, what is done before the step (its result is passed on), the step.
STEPS: dict[str, tuple[str, Callable[[Any, Side], Any], Callable[[Any, Any], Any]]] = {
    "product: split": (PRODUCT, first_loop("C"), lambda sch, loop: sch.split(loop, [None, 8])),
    "product: split with a tail": (PRODUCT, first_loop("C"), lambda sch, loop: sch.split(loop, [None, 7])),
    "product: reorder": (
        PRODUCT,
        lambda sch, side: sch.get_loops(side.block(sch, "C")),
        lambda sch, loops: sch.reorder(*reversed(loops)),
    ),
    "product: parallel": (PRODUCT, first_loop("C"), lambda sch, loop: sch.parallel(loop)),
    "product: cache_read": (PRODUCT, blocks_of("C"), lambda sch, found: sch.cache_read(found[0], 0, "global")),
    "product: cache_write": (PRODUCT, blocks_of("C"), lambda sch, found: sch.cache_write(found[0], 0, "global")),
    "product: decompose_reduction": (
        PRODUCT,
        lambda sch, side: (block := side.block(sch, "C"), sch.get_loops(block)[2]),
        lambda sch, found: sch.decompose_reduction(*found),
    ),
    "conv2d: compute_inline": (CONV2D, blocks_of("pad"), lambda sch, found: sch.compute_inline(found[0])),
    "conv2d: reverse_compute_inline": (
        CONV2D,
        blocks_of("relu"),
        lambda sch, found: sch.reverse_compute_inline(found[0]),
    ),
    "conv2d: compute_at": (
        CONV2D,
        lambda sch, side: (side.block(sch, "pad"), sch.get_loops(side.block(sch, "conv"))[1]),
        lambda sch, found: sch.compute_at(*found),
    ),
    "conv2d: reverse_compute_at": (
        CONV2D,
        lambda sch, side: (side.block(sch, "bias"), sch.get_loops(side.block(sch, "conv"))[3]),
        lambda sch, found: sch.reverse_compute_at(*found),
    ),
    "chain of 40: split": (chain(40), first_loop("block20"), lambda sch, loop: sch.split(loop, [None, 8])),
    "chain of 40: compute_at": (
        chain(40),
        lambda sch, side: (side.block(sch, "block20"), sch.get_loops(side.block(sch, "block21"))[0]),
        lambda sch, found: sch.compute_at(*found),
    ),
    "chain of 40: compute_inline": (
        chain(40),
        blocks_of("block20"),
        lambda sch, found: sch.compute_inline(found[0]),
    ),
    "chain of 40: cache_read": (
        chain(40),
        blocks_of("block20"),
        lambda sch, found: sch.cache_read(found[0], 0, "global"),
    ),
}
REPLAYS = {
    "product: replay of its tiling": (PRODUCT, tile_product),
    "conv2d: replay of its tiling": (CONV2D, tile_conv2d),
    "product: replay of its CUDA sketch": (PRODUCT, sketch_cuda),
}


class Side:
    """What differs between the two."""

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

    def measure(self, name: str) -> float:
        """Seconds of a step, of a replay, or per block of a chain."""
        if name.startswith("inline each of "):
            return self._inline_all(int(name.split()[3]))
        if name in REPLAYS:
            return self._replay(*REPLAYS[name])
        text, prepare, act = STEPS[name]
        spent = []
        for _ in range(5):
            sch = self.fresh(text)
            given = prepare(sch, self)
            start = time.process_time()
            act(sch, given)
            spent.append(time.process_time() - start)
        return statistics.median(spent)

    def _replay(self, text: str, schedule: Callable[[Any, Side], None]) -> float:
        recorded = self.fresh(text)
        schedule(recorded, self)
        spent = []
        for _ in range(20):
            sch = self.fresh(text)
            start = time.process_time()
            recorded.trace.apply_to_schedule(sch, remove_postproc=False)
            spent.append(time.process_time() - start)
        return statistics.median(spent)

    def _inline_all(self, blocks: int) -> float:
        sch = self.fresh(chain(blocks))
        found = [self.block(sch, f"block{k}") for k in range(blocks - 1)]
        start = time.process_time()
        for block in found:
            sch.compute_inline(block)
        return (time.process_time() - start) / len(found)


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
    names = [*STEPS, *REPLAYS, *(f"inline each of {n} blocks" for n in options.chain)]
    print(f"{'':36}{'us':>10}" + (f"{'peer us':>12}{'ratio':>8}{'':4}half of them" if other else ""))
    for name in names:
        if options.only not in name:
            continue
        own, theirs = [], []
        for _ in range(options.rounds):
            own.append(side.measure(name))
            if other:
                theirs.append(other.measure(name))
        row = f"{name:36}{statistics.median(own) * 1e6:>10.1f}"
        if other:
            low, middle, high = quartiles(theirs, own)
            row += f"{statistics.median(theirs) * 1e6:>12.1f}{middle:>8.1f}    {low:.1f} to {high:.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
