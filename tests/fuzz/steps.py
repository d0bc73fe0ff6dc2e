"""Random steps of a schedule, recorded so that they can be done again, with some of them left out.

A step is the name of a function of this file, or of data_steps.py, and what it chose: names of blocks, positions of
loops, factors. Done again, it takes the recorded choices; where one no longer makes sense (the block is gone, since
the step that made it was left out) the step is skipped.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import tilewright as tw
from fuzz import intrinsics
from fuzz.data_steps import balance, prefetch_at, prefetch_indirect
from fuzz.layouts import LAYOUTS, ORDERS
from fuzz.lowered_steps import horizontal_fuse, lift_loop, reverse_cache_read, reverse_cache_write
from tilewright import ir
from tilewright.heuristics.cpu import schedule_for_cpu

#: In place of the code of a refusal: the step was not attempted.
IMPOSSIBLE = "nothing to choose"


class Impossible(Exception):
    """The step has nothing to choose from, or not what was recorded."""


@dataclass
class Step:
    """The name of a step and what it chose."""

    name: str
    choices: list[Any] = field(default_factory=list)


class Dice:
    """Chooses at random and records it, or takes what was recorded."""

    def __init__(self, sch: tw.Schedule, blocks: dict[str, Any]) -> None:
        self.sch = sch
        main = sch.mod.functions["main"]
        self.params = [main.buffer_map[param].name for param in main.params if param in main.buffer_map]
        self.blocks = blocks
        self.rng: random.Random | None = None
        self.step = Step("")
        self.position = 0
        #: What has ended the step, though it has changed the program before: a code.
        self.cut_by = ""
        #: Called whenever a step has chosen something: what a crash leaves behind.
        self.tell: Callable[[Step], None] | None = None

    def take(self, options: Sequence[Any]) -> Any:
        """One of the options, which are texts or numbers."""
        if not options:
            raise Impossible
        if self.rng is not None:
            chosen = self.rng.choice(options)
            self.step.choices.append(chosen)
            if self.tell is not None:
                self.tell(self.step)
            return chosen
        if self.position >= len(self.step.choices) or self.step.choices[self.position] not in options:
            raise Impossible
        self.position += 1
        return self.step.choices[self.position - 1]

    def chance(self, probability: float) -> bool:
        return bool(self.take([True] * round(probability * 10) + [False] * round(10 - probability * 10)))

    def block(self, among: Sequence[str] | None = None) -> Any:
        return self.blocks[self.take(list(self.blocks) if among is None else among)]

    def name_of(self, block: Any) -> str:
        return next(name for name, handle in self.blocks.items() if handle is block)

    def block_that(self, suits: Callable[[Any], bool]) -> Any:
        """Mostly a block that suits; at times any, to see it refused."""
        if self.chance(0.1):
            return self.block()
        return self.block([name for name, handle in self.blocks.items() if suits(handle)])

    def loops(self, block: Any) -> list[Any]:
        found: list[Any] = self.sch.get_loops(block)
        return found

    def loop(self, block: Any = None) -> Any:
        loops = self.loops(block or self.block())
        return loops[self.take(range(len(loops)))]

    def factor(self) -> int:
        return int(self.take([1, 2, 2, 3, 4, 5, 8]))

    def names(self, handles: Sequence[Any]) -> list[str]:
        """The names under which these blocks are known."""
        wanted = [self.sch.get(handle).id for handle in handles]
        return [name for name, handle in self.blocks.items() if self.sch.get(handle).id in wanted]

    def made(self, handle: Any) -> None:
        """A new block: later steps find it under its name."""
        name = self.sch.get(handle).name_hint
        while name in self.blocks:
            name += "'"
        self.blocks[name] = handle

    def forget_gone(self) -> None:
        """Drops the blocks that the last step has replaced."""
        for name, handle in list(self.blocks.items()):
            try:
                self.sch.get(handle)
            except tw.ScheduleError:
                del self.blocks[name]

    def note_new(self, handles: Sequence[Any]) -> None:
        """Those of the blocks that are not known yet."""
        self.forget_gone()
        known = {self.sch.get(handle).id for handle in self.blocks.values()}
        for handle in [handle for handle in handles if self.sch.get(handle).id not in known]:
            self.made(handle)

    def drop(self, block: Any) -> None:
        del self.blocks[self.name_of(block)]


def split(d: Dice) -> None:
    loop = d.loop()
    factors = [d.factor() for _ in range(d.take([1, 1, 2]))]
    factors.insert(d.take([0, len(factors)]), None)
    d.sch.split(loop, factors, preserve_unit_iters=d.chance(0.8))


def split_exact(d: Dice) -> None:
    d.sch.split(d.loop(), [d.factor(), d.factor()], disable_predication=d.chance(0.1))


def split_sampled(d: Dice) -> None:
    loop = d.loop()
    n = d.take([2, 3])
    drawn = d.sch.sample_perfect_tile(loop, n=n, max_innermost_factor=d.take([4, 16]))
    d.sch.split(loop, drawn)


def split_partitioned(d: Dice) -> None:
    loop = d.loop()
    n = d.take([2, 3])
    drawn = d.sch.sample_partitioned_tile(loop, n=n, partition_pos=d.take(range(n)), innerpart_factor=d.factor())
    d.sch.split(loop, drawn)


def loop_partition(d: Dice) -> None:
    block = d.block()
    loop = d.loop(block)
    lengths = [d.factor() for _ in range(d.take([1, 1, 2]))]
    if d.chance(0.5):
        lengths.insert(d.take([0, len(lengths)]), None)
    below = d.names(d.sch.get_child_blocks(loop))
    parts = d.sch.loop_partition(loop, lengths, preserve_unit_iters=d.chance(0.8))
    # Copies replace the blocks below, and those in them.
    for name in below:
        d.blocks.pop(name)
    for part in parts:
        for block in d.sch.get_child_blocks(part):
            d.made(block)


def merge(d: Dice) -> None:
    if d.chance(0.2):
        d.sch.merge(d.loop(), d.loop())
        return
    # Mostly loops at one depth that are equally long, below different blocks.
    nests = {name: d.loops(block) for name, block in d.blocks.items()}
    alike = [
        f"{one} {other} {depth}"
        for one, first in nests.items()
        for other, second in nests.items()
        for depth in range(min(len(first), len(second)))
        if one != other
        and not d.sch.get(first[0]).same_as(d.sch.get(second[0]))
        and all(_fit(d.sch.get(first[at]), d.sch.get(second[at])) for at in range(depth + 1))
    ]
    one, other, depth = d.take(alike).split(" ")
    d.sch.merge(nests[one][int(depth)], nests[other][int(depth)])


def _fit(loop: ir.For, other: ir.For) -> bool:
    serial = loop.kind is other.kind is ir.ForKind.SERIAL and not loop.annotations and not other.annotations
    return serial and str(loop.extent) == str(other.extent) and str(loop.min) == str(other.min) == "0"


def reorder_block_iter_var(d: Dice) -> None:
    block = d.block()
    rest = list(range(len(d.sch.get(block).iter_vars)))
    order = []
    while rest:
        order.append(d.take(rest))
        rest.remove(order[-1])
    d.sch.reorder_block_iter_var(block, order)


def fuse(d: Dice) -> None:
    loops = d.loops(d.block())
    start = d.take(range(len(loops)))
    d.sch.fuse(*loops[start : start + d.take([2, 2, 3])], preserve_unit_iters=d.chance(0.8))


def reorder(d: Dice) -> None:
    loops = d.loops(d.block())
    rest = list(range(len(loops)))
    count = d.take(range(2, len(loops) + 1)) if len(loops) > 1 else d.take([])
    order = []
    for _ in range(count):
        chosen = d.take(rest)
        rest.remove(chosen)
        order.append(loops[chosen])
    d.sch.reorder(*order)


def add_unit_loop(d: Dice) -> None:
    d.sch.add_unit_loop(d.loop() if d.chance(0.5) else d.block())


def parallel(d: Dice) -> None:
    # At times in a nest that has a parallel loop: lowering keeps one of them.
    nested = [
        name
        for name, block in d.blocks.items()
        if any(d.sch.get(loop).kind is ir.ForKind.PARALLEL for loop in d.loops(block))
    ]
    d.sch.parallel(d.loop(d.block(nested) if nested and d.chance(0.5) else None))


def vectorize(d: Dice) -> None:
    loops = d.loops(d.block())
    if loops and d.chance(0.6):
        d.sch.vectorize(loops[-1])
    else:
        d.sch.vectorize(loops[d.take(range(len(loops)))])


def vectorize_reduction(d: Dice) -> None:
    """A loop that drives a reduction axis."""
    block = d.block_that(lambda handle: _reduction_loops(d, handle))
    loops = _reduction_loops(d, block)
    d.sch.vectorize(loops[d.take(range(len(loops)))])


def _realize(d: Dice, block: Any) -> Any:
    found: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, ir.BlockRealize) and node.block.same_as(d.sch.get(block)):
            found.append(node)

    ir.post_order_visit(d.sch.mod.functions["main"].body, look)
    return found[0]


def _reduction_loops(d: Dice, block: Any) -> list[Any]:
    drives: list[Any] = []
    node = d.sch.get(block)
    if all(axis.iter_type != ir.IterType.COMM_REDUCE for axis in node.iter_vars):
        return []
    for axis, value in zip(node.iter_vars, _realize(d, block).iter_values, strict=True):
        if axis.iter_type == ir.IterType.COMM_REDUCE:
            ir.post_order_visit(value, drives.append)
    return [loop for loop in d.loops(block) if any(e.same_as(d.sch.get(loop).loop_var) for e in drives)]


def unroll(d: Dice) -> None:
    d.sch.unroll(d.loop())


def bind(d: Dice) -> None:
    d.sch.bind(d.loop(), d.take(["blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread.x"]))


@contextlib.contextmanager
def as_far_as_possible(d: Dice) -> Iterator[None]:
    """The rest of a step whose beginning has changed the program: a refusal ends it, and what was done stays."""
    try:
        yield
    except Impossible:
        d.cut_by = IMPOSSIBLE
    except tw.ScheduleError as error:
        d.cut_by = error.code


def bind_tiles(d: Dice) -> None:
    """The tiles of a loop on blocks or virtual threads, what is inside of them on threads."""
    outer, inner = d.sch.split(d.loop(), [None, d.take([2, 4])])
    with as_far_as_possible(d):
        d.sch.bind(inner, d.take(["threadIdx.x", "threadIdx.y"]))
        d.sch.bind(outer, d.take(["blockIdx.x", "blockIdx.y", "vthread.x"]))


def fetch(d: Dice) -> None:
    """A copy of what a block reads, under a loop of the block, made by the threads that run it."""
    block = d.block()
    position = d.take(range(len(d.sch.get(block).reads)))
    copy = d.sch.cache_read(block, position, d.take(["shared", "shared", "shared", "local", "warp"]))
    d.made(copy)
    with as_far_as_possible(d):
        at = d.take(range(len(d.loops(block))))
        d.sch.compute_at(copy, d.loops(block)[at], d.chance(0.7))
        around = [d.sch.get(loop) for loop in d.loops(copy)[: at + 1]]
        bound = [loop for loop in around if loop.thread_binding and isinstance(loop.extent, ir.IntImm)]
        threads = {loop.thread_binding.thread_tag: loop.extent.value for loop in bound}
        threads = {axis: extent for axis, extent in threads.items() if "block" not in axis}
        chosen = [axis for axis in threads if d.chance(0.8)]
        fused = d.sch.fuse(*d.loops(copy)[at + 1 :])
        _, *parts = d.sch.split(fused, [None, *(threads[axis] for axis in chosen)])
        for part, axis in zip(parts, chosen, strict=True):
            d.sch.bind(part, axis)


def cache_read(d: Dice) -> None:
    block = d.block()
    position = d.take(range(len(d.sch.get(block).reads)))
    scope = d.take(["global", "local", "shared"])
    readers = [d.block()] if d.chance(0.2) else None
    d.made(d.sch.cache_read(block, position, scope, readers))


def cache_write(d: Dice) -> None:
    block = d.block()
    position = d.take(range(len(d.sch.get(block).writes)))
    d.made(d.sch.cache_write(block, position, d.take(["global", "local", "shared"])))


def cache_inplace(d: Dice) -> None:
    block = d.block_that(lambda block: _both(d.sch.get(block)))
    position = d.take(range(len(d.sch.get(block).reads)))
    for made in d.sch.cache_inplace(block, position, d.take(["global", "local"])):
        d.made(made)


def _both(block: Any) -> list[Any]:
    """What a block reads and writes."""
    return [read for read in block.reads if any(read.buffer.same_as(write.buffer) for write in block.writes)]


def cache_index(d: Dice) -> None:
    for made in d.sch.cache_index(d.block(), d.take(["global", "local"]), d.take([0, 0, 1, 2, 3])):
        d.made(made)


def _touched(d: Dice, block: Any) -> tuple[str, int]:
    node = d.sch.get(block)
    which = d.take(["read", "write"])
    return which, d.take(range(len(node.reads if which == "read" else node.writes)))


def reindex(d: Dice) -> None:
    block = d.block()
    d.made(d.sch.reindex(block, _touched(d, block)))


def _reindex_cache(d: Dice, kind: str) -> None:
    block = d.block()
    node = d.sch.get(block)
    regions = node.reads if kind == "read" else node.writes
    position = d.take(range(len(regions)))
    used: set[int] = set()
    for part in regions[position].region:
        ir.post_order_visit(part.min, lambda e: used.add(hash(e)) if isinstance(e, ir.Var) else None)
    axes = [i for i, axis in enumerate(node.iter_vars) if hash(axis.var) in used]
    orders = ORDERS.get(len(axes), [])
    order = orders[d.take(range(len(orders)))]
    names = ", ".join(f"v{i}" for i in range(len(node.iter_vars)))
    index_map = eval(f"lambda {names}: order([{', '.join(f'v{i}' for i in axes)}])", {"order": order})
    method = d.sch.reindex_cache_read if kind == "read" else d.sch.reindex_cache_write
    d.made(method(block, position, d.take(["global", "local"]), index_map))


def reindex_cache_read(d: Dice) -> None:
    _reindex_cache(d, "read")


def reindex_cache_write(d: Dice) -> None:
    _reindex_cache(d, "write")


def read_at(d: Dice) -> None:
    block = d.block()
    loop = d.loop(block)
    position = d.take(range(len(d.sch.get(block).reads)))
    d.made(d.sch.read_at(loop, block, position, d.take(["global", "local", "shared"])))


def write_at(d: Dice) -> None:
    block = d.block()
    loop = d.loop(block)
    position = d.take(range(len(d.sch.get(block).writes)))
    d.made(d.sch.write_at(loop, block, position, d.take(["global", "local", "shared"])))


def rolling_buffer(d: Dice) -> None:
    """Mostly tiles of a block, a producer computed for each of them, in a buffer that goes round."""
    producer = d.block_that(lambda block: _neighbors_meet(d, block))
    if d.chance(0.2):
        d.sch.rolling_buffer(producer, d.take(range(len(d.sch.get(producer).writes))))
        return
    consumer = d.block(d.names(d.sch.get_consumers(producer)))
    loops = d.loops(consumer)
    at = d.take([*range(len(loops)), *range(min(len(loops), 1))])
    outer, inner = d.sch.split(loops[at], [None, d.take([2, 2, 3, 4])])
    with as_far_as_possible(d):
        if at > 0 and d.chance(0.8):
            d.sch.reorder(outer, *loops[:at])
        where = outer
        if at + 1 < len(loops) and d.chance(0.3):
            where, _ = d.sch.split(loops[at + 1], [None, d.take([2, 3])])
            d.sch.reorder(where, inner)
        d.sch.compute_at(producer, where, d.chance(0.3))
        chain = [producer]
        # Cascades: what the producer reads from rolls, too, before it or after.
        while d.chance(0.5) and (feeds := [b for b in d.sch.get_producers(chain[-1]) if _neighbors_meet(d, b)]):
            chain.append(d.block(d.names(feeds)))
            d.sch.compute_at(chain[-1], where, False)
        for block in reversed(chain) if d.chance(0.5) else chain:
            d.sch.rolling_buffer(block, 0)


def _neighbors_meet(d: Dice, producer: Any) -> bool:
    """The one consumer reads several elements at a time of what the block alone writes."""
    consumers, node = d.sch.get_consumers(producer), d.sch.get(producer)
    if len(consumers) != 1 or len(node.writes) != 1 or node.writes[0].buffer.name in d.params or _both(node):
        return False
    touches = lambda region: region.buffer.same_as(node.writes[0].buffer)  # noqa: E731
    writers = [block for block in d.blocks.values() if any(map(touches, d.sch.get(block).writes))]
    reads = [read for read in d.sch.get(consumers[0]).reads if touches(read)]
    return len(writers) == 1 and any(str(part.extent) != "1" for read in reads for part in read.region)


def storage_align(d: Dice) -> None:
    block = d.block()
    position, axis = d.take(range(len(d.sch.get(block).writes))), d.take([-2, -1, 0, 1])
    d.sch.storage_align(block, position, axis, d.take([1, 4, 16]), d.take([0, 1, 3]))


def set_scope(d: Dice) -> None:
    block = d.block()
    position = d.take(range(len(d.sch.get(block).writes)))
    d.sch.set_scope(block, position, d.take(["global", "local", "shared"]))


def compute_at(d: Dice) -> None:
    producer = d.block_that(lambda block: d.sch.get_consumers(block))
    consumers = d.names(d.sch.get_consumers(producer))
    loop = d.loop(d.block(consumers)) if consumers and d.chance(0.9) else d.loop()
    d.sch.compute_at(producer, loop, d.chance(0.3), d.take([-1, -1, -1, -2, 0, 1]))


def reverse_compute_at(d: Dice) -> None:
    consumer = d.block_that(lambda block: d.sch.get_producers(block))
    producers = d.names(d.sch.get_producers(consumer))
    loop = d.loop(d.block(producers)) if producers and d.chance(0.9) else d.loop()
    d.sch.reverse_compute_at(consumer, loop, d.chance(0.3), d.take([-1, -1, -1, -2, 0, 1]))


def compute_inline(d: Dice) -> None:
    """A block that others read; at times one that nobody does, which goes."""
    unread = d.chance(0.1)
    block = d.block_that(lambda block: bool(d.sch.get_consumers(block)) != unread and not _is_output(d, block))
    d.sch.compute_inline(block)
    d.drop(block)


def _is_output(d: Dice, block: Any) -> bool:
    return any(write.buffer.name in d.params for write in d.sch.get(block).writes)


def _is_plain(node: ir.Block) -> bool:
    """One store, and nothing that is reduced."""
    kinds = [axis.iter_type for axis in node.iter_vars]
    return isinstance(node.body, ir.BufferStore) and ir.IterType.COMM_REDUCE not in kinds


def _follows(d: Dice, block: Any) -> bool:
    """The only reader of what one other block makes; plain, both."""
    producers = d.sch.get_producers(block)
    if len(producers) != 1 or not _is_plain(d.sch.get(block)) or not _is_plain(d.sch.get(producers[0])):
        return False
    return len(d.sch.get_consumers(producers[0])) == 1 and d.sch.get(producers[0]).writes[0].buffer.name not in d.params


def reverse_compute_inline(d: Dice) -> None:
    block = d.block_that(lambda block: _follows(d, block))
    d.sch.reverse_compute_inline(block)
    d.drop(block)


def decompose_reduction(d: Dice) -> None:
    block = d.block_that(lambda block: d.sch.get(block).init is not None)
    d.made(d.sch.decompose_reduction(block, d.loop(block)))


def rfactor(d: Dice) -> None:
    block = d.block_that(lambda block: d.sch.get(block).init is not None and _reduction_loops(d, block))
    node = d.sch.get(block)
    if len(node.writes) > 1 and (re.search("[<>]=", node.script()) or "int" not in node.writes[1].buffer.dtype):
        raise Impossible  # of equal values another may be found, and NaN is larger than what comes before it only
    loops = _reduction_loops(d, block)
    loop = loops[d.take(range(len(loops)))] if d.chance(0.9) else d.loop(block)
    rank = len(node.writes[0].region) if node.writes else 0
    d.made(d.sch.rfactor(loop, d.take(range(-rank - 1, rank + 1)) if d.chance(0.9) else rank + 1))


def _is_sum(node: ir.Block) -> bool:
    init, body = node.init, node.body
    starts = isinstance(init, ir.BufferStore) and getattr(init.value, "value", None) == 0
    return starts and isinstance(body, ir.BufferStore) and isinstance(body.value, ir.Add)


def fuse_reduction_epilogue(d: Dice) -> None:
    reduction = d.block_that(lambda block: _is_sum(d.sch.get(block)) and d.sch.get_consumers(block))
    epilogue = d.block(d.names(d.sch.get_consumers(reduction)))
    d.sch.fuse_reduction_epilogue(reduction, epilogue)
    d.drop(epilogue)


def decompose_padding(d: Dice) -> None:
    copies = r"\] = T\.if_then_else\(.*\], [^]]*\)$"
    block = d.block_that(lambda block: re.search(copies, d.sch.get(block).script()))
    d.made(d.sch.decompose_padding(block, d.loop(block)))


def pad_einsum(d: Dice) -> None:
    block = d.block_that(lambda block: _at_axes(d.sch.get(block)))
    d.sch.pad_einsum(block, [d.take([1, 2, 4]) for _ in d.sch.get(block).iter_vars])
    d.note_new(d.sch.get_child_blocks(d.sch.get_block("root")))


def _at_axes(node: ir.Block) -> bool:
    """One store, of elements that axes or numbers name."""
    if not isinstance(node.body, ir.BufferStore) or not node.iter_vars:
        return False
    parts = [part for region in [*node.reads, *node.writes] for part in region.region]
    return all(isinstance(part.min, (ir.Var, ir.IntImm)) and str(part.extent) == "1" for part in parts)


def sample_compute_location(d: Dice) -> None:
    block = d.block_that(lambda block: d.sch.get_consumers(block))
    loop = d.sch.sample_compute_location(block)
    inlined = next(reversed(d.sch.trace.decisions.values())) == -2
    d.sch.compute_at(block, loop, preserve_unit_loops=True)
    if inlined:
        d.drop(block)


def blockize(d: Dice) -> None:
    unit = d.chance(0.7)
    if d.chance(0.8):
        d.made(d.sch.blockize(d.loop(), preserve_unit_iters=unit, inner_init=d.chance(0.3)))
    else:
        d.made(d.sch.blockize([d.block() for _ in range(d.take([1, 2, 2]))], preserve_unit_iters=unit))


def tensorize(d: Dice) -> None:
    """Rows of copies, or tiles of a block that is one store, by an intrinsic that is registered for them."""
    if d.chance(0.3):
        block = d.block_that(lambda block: d.sch.get(block).name_hint.endswith(("_global", "_local")))
        writes = d.sch.get(block).writes
        dtype = str(writes[0].buffer.dtype) if writes else "float32"
        loop = d.loops(block)[-1] if d.loops(block) and d.chance(0.8) else d.loop(block)
        extent = d.sch.get(loop).extent
        rows = intrinsics.of_copies(extent.value if isinstance(extent, ir.IntImm) else 4, dtype)
        d.sch.tensorize(loop, rows, d.chance(0.7))
        d.forget_gone()
        return
    block = d.block([name for name, block in d.blocks.items() if _tiles(d, block)])
    tiles = _tiles(d, block)
    chosen = d.take(list(tiles)), d.take([*tiles, "none"]), d.take([*tiles, "none", "none"])
    factors = {axis: d.take([n for n in range(1, 9) if tiles[axis][1] % n == 0]) for axis in tiles if axis in chosen}
    with as_far_as_possible(d):
        inner = [d.sch.split(tiles[axis][0], [None, factor])[1] for axis, factor in factors.items()]
        loops = d.loops(block)
        same = lambda a, b: d.sch.get(a).same_as(d.sch.get(b))  # noqa: E731
        d.sch.reorder(*[loop for loop in loops if not any(same(loop, other) for other in inner)], *inner)
        if d.sch.get(block).init is not None:
            d.made(d.sch.decompose_reduction(block, inner[0]))
        d.sch.tensorize(inner[0], intrinsics.of_tile(d.sch.get(block), factors), d.chance(0.7))
    d.forget_gone()


def _tiles(d: Dice, block: Any) -> dict[str, tuple[Any, int]]:
    """The axes of a block that an intrinsic can describe, which are loops: the loop, and how long it is."""
    node = d.sch.get(block)
    if not intrinsics.is_describable(node):
        return {}
    loops = {str(d.sch.get(loop).loop_var.name): loop for loop in d.loops(block)}
    found = {}
    for axis, value in zip(node.iter_vars, _realize(d, block).iter_values, strict=True):
        if isinstance(value, ir.Var) and isinstance(axis.dom.extent, ir.IntImm) and value.name in loops:
            found[str(axis.var.name)] = (loops[value.name], axis.dom.extent.value)
    return found


def annotate(d: Dice) -> None:
    where = d.loop() if d.chance(0.5) else d.block()
    value = d.take([1, "text", 0.5, "list", "drawn", "extent"])
    if value == "list":
        value = [1, ["x"], 2.5]
    elif value == "drawn":
        value = d.sch.sample_categorical([1, 2, 4], [0.5, 0.25, 0.25])
    elif value == "extent":  # an expression where sizes are open, which traces cannot hold
        value = [d.sch.get(d.loop()).extent]
    d.sch.annotate(where, d.take(["note", "other"]), value)


def unannotate(d: Dice) -> None:
    annotated = [
        f"{name} {at}"
        for name, block in d.blocks.items()
        for at, node in enumerate([block, *d.loops(block)])
        if d.sch.get(node).annotations
    ]
    name, at = d.take(annotated).rsplit(" ", 1)
    where = [d.blocks[name], *d.loops(d.blocks[name])][int(at)]
    d.sch.unannotate(where, d.take([*d.sch.get(where).annotations, "other"]))


def transform_layout(d: Dice) -> None:
    """Of buffers that blocks allocate: callers see the layout of parameters."""
    is_own = lambda region: region.buffer.name not in d.params  # noqa: E731
    block = d.block_that(lambda block: any(map(is_own, d.sch.get(block).writes)))
    which = d.take(["read", "write", "write"])
    regions = d.sch.get(block).reads if which == "read" else d.sch.get(block).writes
    position = d.take([i for i, region in enumerate(regions) if is_own(region)])
    buffer = regions[position].buffer
    layouts = LAYOUTS.get(len(buffer.shape), [])
    layout = layouts[d.take(range(len(layouts)))]
    kind = d.take(["none", "none", "number", "function", "extent"])
    pad: Any = None
    if kind == "number":
        pad = 1.5 if "float" in buffer.dtype else 1
    elif kind == "function" and buffer.dtype == "int32":
        pad = lambda *indices: sum(indices)  # noqa: E731
    elif kind == "extent":
        pad = buffer.shape[0].astype(buffer.dtype)
    is_injective = d.chance(0.2)
    d.sch.transform_layout(block, (which, position), layout, pad_value=pad, assume_injective_transform=is_injective)


def transform_block_layout(d: Dice) -> None:
    block = d.block_that(lambda block: _has_plain_loops(d, block))
    layouts = LAYOUTS.get(len(d.sch.get(block).iter_vars), [])
    d.sch.transform_block_layout(block, layouts[d.take(range(len(layouts)))])


def _has_plain_loops(d: Dice, block: Any) -> bool:
    """One for each axis, and nothing else in them."""
    loops = [d.sch.get(loop) for loop in d.loops(block)]
    alone = all(isinstance(loop.body, (ir.For, ir.BlockRealize)) for loop in loops)
    serial = all(loop.kind is ir.ForKind.SERIAL and not loop.annotations for loop in loops)
    return alone and serial and len(loops) == len(d.sch.get(block).iter_vars) > 0


def set_axis_separator(d: Dice) -> None:
    block = d.block()
    writes = d.sch.get(block).writes
    position = d.take(range(len(writes)))
    axis = d.take(range(len(writes[position].buffer.shape) + 1))
    d.sch.set_axis_separator(block, ("write", position), [axis])


def by_rules(d: Dice) -> None:
    """All that the compiler does to a program that nobody has scheduled; never refused."""
    before, targets = d.sch.mod, ["native", "llvm -mcpu=haswell -num-cores=4", "llvm -mcpu=skylake-avx512"]
    schedule_for_cpu(d.sch, tw.Target(d.take(targets)), best=d.chance(0.5))
    if d.sch.mod.same_as(before):
        raise Impossible
    for block in d.sch.get_child_blocks(d.sch.get_block("root")):  # zero times an infinity is kept, here
        for key in ("skip_zero_terms", "skip_zero_terms_of_padding"):
            if key in d.sch.get(block).annotations:
                d.sch.unannotate(block, key)
    d.forget_gone()


def enter_postproc(d: Dice) -> None:
    d.sch.enter_postproc()


#: The steps and how often each is drawn, compared with the others.
WEIGHTS: dict[Callable[[Dice], None], int] = {
    split: 5,
    split_exact: 2,
    split_sampled: 2,
    split_partitioned: 1,
    loop_partition: 1,
    merge: 4,
    reorder_block_iter_var: 1,
    fuse: 3,
    reorder: 5,
    add_unit_loop: 1,
    parallel: 2,
    balance: 1,
    vectorize: 3,
    vectorize_reduction: 3,
    unroll: 1,
    bind: 2,
    bind_tiles: 2,
    fetch: 2,
    cache_read: 4,
    cache_write: 3,
    cache_inplace: 3,
    cache_index: 2,
    reindex: 2,
    reindex_cache_read: 1,
    reindex_cache_write: 1,
    reverse_cache_read: 2,
    reverse_cache_write: 2,
    horizontal_fuse: 2,
    lift_loop: 2,
    read_at: 2,
    write_at: 2,
    prefetch_at: 2,
    prefetch_indirect: 1,
    rolling_buffer: 5,
    storage_align: 1,
    set_scope: 1,
    compute_at: 6,
    reverse_compute_at: 5,
    compute_inline: 2,
    reverse_compute_inline: 3,
    decompose_reduction: 4,
    rfactor: 4,
    fuse_reduction_epilogue: 3,
    decompose_padding: 3,
    pad_einsum: 2,
    sample_compute_location: 2,
    blockize: 3,
    tensorize: 4,
    annotate: 1,
    unannotate: 2,
    transform_layout: 3,
    transform_block_layout: 2,
    set_axis_separator: 1,
    by_rules: 2,
    enter_postproc: 1,
}
STEPS = {step.__name__: step for step in WEIGHTS}
#: Which ask for much: before others have changed the program they find more often what they need.
_FIRST = [
    *[rolling_buffer.__name__] * 4,
    *[merge.__name__, fuse_reduction_epilogue.__name__] * 2,
    *(step.__name__ for step in (cache_inplace, reverse_compute_inline, rfactor, decompose_padding, pad_einsum)),
]
_DRAWN = [step.__name__ for step, weight in WEIGHTS.items() for _ in range(weight)]


def block_names(module: ir.Module) -> list[str]:
    """The names of the blocks below the root, in the order of the program."""
    names: list[str] = []
    ir.post_order_visit(
        module.functions["main"].body,
        lambda node: names.append(node.name_hint) if isinstance(node, ir.Block) and node.name_hint != "root" else None,
    )
    return names


class Scheduling:
    """A schedule and what was done to it; each attempt reports what became of it."""

    def __init__(self, program: ir.PrimFunc, names: list[str], seed: int) -> None:
        self.sch = tw.Schedule(program, seed=seed, error_render_level="none")
        self.dice = Dice(self.sch, {name: self.sch.get_block(name) for name in names})
        self.done: list[Step] = []

    def draw(self, rng: random.Random, without: Collection[str] = ()) -> tuple[str, str]:
        """Attempts a random step, none of those in `without`: its name and the code of its refusal, or ""."""
        drawn = _FIRST if not self.done and rng.random() < 0.4 else _DRAWN
        name = rng.choice(drawn)
        while name in without:
            name = rng.choice(_DRAWN)
        self.dice.rng, self.dice.step = rng, Step(name)
        return self.dice.step.name, self.attempt()

    def again(self, step: Step) -> str:
        """Does a recorded step: the code of its refusal, or ""."""
        self.dice.rng, self.dice.step, self.dice.position = None, step, 0
        return self.attempt()

    def attempt(self) -> str:
        before = self.sch.mod
        self.dice.cut_by = ""
        try:
            STEPS[self.dice.step.name](self.dice)
        except Impossible:
            return IMPOSSIBLE
        except tw.ScheduleError as error:
            if not self.sch.mod.same_as(before):
                raise AssertionError(f"a refusal ({error.code}) has changed the program") from error
            return error.code
        self.done.append(self.dice.step)
        return self.dice.cut_by
