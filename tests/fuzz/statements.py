"""Parts of random programs that are no plain blocks: statements outside of blocks, vector code, opaque blocks that keep
what they do not write, several writers of one buffer, views of what is there, loops that are bound to threads."""

from __future__ import annotations

from fuzz.expressions import EXACT, FLOATS, Axis, Buffer, Extent
from fuzz.stages import Stages
from fuzz.writer import EXTENTS, plus, product

THREADS = ["threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread.x"]


class Statements(Stages):
    """One method for each sort of part."""

    def complete(self, rank: int | None = None) -> list[Buffer]:
        """What is written as a whole, with constant extents."""
        found = [b for b in self.buffers if b is not self.e.index_buffer and b.box is None and b.shape]
        found = [b for b in found if all(isinstance(extent, int) for extent in b.shape)]
        return [b for b in found if rank is None or len(b.shape) == rank]

    def bare(self) -> None:
        """Loops around stores that are in no block, or one store."""
        candidates = self.complete()
        if not candidates:
            return self.elementwise()
        is_new = self.chance(0.2)
        buffer = Buffer(self.name("B"), self.rng.choice(self.dtypes), [self.rng.choice(EXTENTS)])
        if not is_new:
            buffer = self.rng.choice(candidates)
        depth, indices = 1, []
        for extent in buffer.shape:
            if not is_new and self.chance(0.4):
                indices.append(str(self.rng.randrange(int(extent))))
                continue
            loop = Axis(self.name("i"), int(extent))
            self.add(depth, f"for {loop.name} in range({extent}):")
            self.e.axes.append(loop)
            indices.append(self.rng.choice([loop.name, loop.name, f"{int(extent) - 1} - {loop.name}"]))
            depth += 1
        if depth > 1 or self.chance(0.3):
            self.let(depth)
        value = self.value_for(buffer, 2)
        if not is_new and self.chance(0.3):
            self.add(depth, f"if {self.e.condition(1).text}:")
            depth += 1
        self.add(depth, f"{buffer.name}[{', '.join(indices)}] = {value.text}")
        self.e.lets = []
        self.settle(buffer, is_new, value.bound)
        return None

    def mixed(self) -> None:
        """A loop with a store outside of blocks, before or behind a block of the same iteration."""
        candidates = self.complete(1)
        if not candidates:
            return self.elementwise()
        other = self.rng.choice(candidates)
        outer, inner = self.rng.choice([2, 3, 4]), self.rng.choice([2, 3, 4])
        buffer = Buffer(self.name("B"), self.rng.choice(self.dtypes), [outer, inner])
        i, v, w = Axis(self.name("i"), outer), Axis(self.name("v"), outer), Axis(self.name("v"), inner)
        self.add(1, f"for {i.name} in range({outer}):")
        is_before = self.chance(0.5)
        if is_before:
            self.store_between(other, i)
        j = self.name("i")
        self.add(2, f"for {j} in range({inner}):")
        self.add(3, f'with T.block("{self.name("S")}"):')
        self.add(4, f'{v.name}, {w.name} = T.axis.remap("SS", [{i.name}, {j}])')
        self.e.axes = [v, w]
        value = self.e.value(buffer.dtype, 2)
        self.add(4, f"{buffer.name}[{v.name}, {w.name}] = {value.text}")
        if not is_before:
            self.e.buffers = [b for b in self.e.buffers if b is not buffer]
            self.store_between(other, i)
        self.settle(buffer, True, value.bound)
        return None

    def store_between(self, buffer: Buffer, loop: Axis) -> None:
        self.e.axes = [loop]
        value = self.value_for(buffer, 1)
        index = self.e.index(buffer.shape[0], 0, int(buffer.shape[0]))
        self.add(2, f"{buffer.name}[{index}] = {value.text}")
        self.settle(buffer, False, max(buffer.bound, value.bound))

    def in_parts(self) -> None:
        """A buffer that several blocks write: ranges of it, or every other row; at times some rows twice."""
        rows = self.rng.choice([2, 4, 5, 6, 8])
        shape: list[Extent] = [rows, *([self.rng.choice([2, 3, 4])] if self.chance(0.4) else [])]
        buffer = Buffer(self.name("B"), self.rng.choice(self.dtypes), shape)
        cut = self.rng.randrange(1, rows)
        overlap = self.rng.choice([0, 0, 1])
        parts = [(cut, 1, 0), (rows - cut + overlap, 1, cut - overlap)]
        if self.chance(0.3):
            parts = [(-(-rows // 2), 2, 0), (rows // 2, 2, 1)]
        if self.chance(0.3):
            parts.append((self.rng.randint(1, rows), 1, 0))
        else:
            self.rng.shuffle(parts)
        bound = 0.0
        for count, step, start in parts:
            axes = [Axis(self.name("v"), extent) for extent in [count, *shape[1:]]]
            depth = self.nest(axes, 1)
            self.e.axes = axes
            first = plus(axes[0].name if step == 1 else f"{axes[0].name} * {step}", start)
            value = self.e.value(buffer.dtype, 1 if self.oddness == 0 else 2)
            bound = max(bound, value.bound)
            indices = ", ".join([first, *(axis.name for axis in axes[1:])])
            self.add(depth, f"{buffer.name}[{indices}] = {value.text}")
        self.settle(buffer, True, bound)

    def kept(self) -> None:
        """An opaque block that writes parts of what exists, with regions as declared: exact or wider."""
        candidates = self.complete()
        if not candidates:
            return self.elementwise()
        buffer = self.rng.choice(candidates)
        rows = int(buffer.shape[0])
        v = Axis(self.name("v"), rows)
        has_axis = self.chance(0.7)
        depth = self.nest([v], 1) if has_axis else self.nest([], 1)
        inner = [Axis(self.name("t"), extent) for extent in buffer.shape[has_axis:]]
        self.e.axes, self.e.loads = [*([v] if has_axis else []), *inner], []
        value = self.value_for(buffer, 2)
        condition = self.e.condition(1).text if self.chance(0.4) else ""
        indices = [*([v.name] if has_axis else []), *(axis.name for axis in inner)]
        access = f"{buffer.name}[{', '.join(indices)}]"
        grows = self.chance(0.4) and self.grows(buffer, product(buffer.shape), value)
        if self.chance(0.8):
            ranges = [f"0:{extent}" for extent in buffer.shape]
            narrow = [v.name, *ranges[1:]] if has_axis else ranges
            reads = {b.name: f"{b.name}[{', '.join(self.whole(b)) or '()'}]" for b in self.e.loads}
            if grows or condition or self.chance(0.3):
                reads.setdefault(buffer.name, f"{buffer.name}[{', '.join(narrow)}]")
            self.add(depth, f"T.reads({', '.join(reads.values())})")
            written = narrow if self.chance(0.8) else ranges
            self.add(depth, f"T.writes({buffer.name}[{', '.join(written)}])")
        for axis in inner:
            self.add(depth, f"for {axis.name} in range({axis.extent}):")
            depth += 1
        if condition:
            self.add(depth, f"if {condition}:")
            depth += 1
        if grows:
            value.bound = buffer.bound + product(buffer.shape) * value.bound
            self.add(depth, f"{access} = {access} {self.accumulate(buffer.dtype, value.text)}")
        else:
            self.add(depth, f"{access} = {value.text}")
        self.settle(buffer, False, max(buffer.bound, value.bound))
        return None

    def vectors(self) -> None:
        """Vector code: four elements at a time, next to one another or apart, all of them or those of a mask."""
        candidates = [b for b in self.complete() if b.dtype != "bool" and int(b.shape[-1]) >= 4]
        if not candidates:
            return self.elementwise()
        source = self.rng.choice(candidates)
        count = self.rng.choice([1, 2, 3])
        target = Buffer(self.name("B"), source.dtype, [4 * count])
        is_new = not (masked := self.chance(0.4) and bool([b for b in candidates if len(b.shape) == 1]))
        if masked:
            target = self.rng.choice([b for b in candidates if len(b.shape) == 1])
            count = -(-int(target.shape[0]) // 4)
        v = Axis(self.name("v"), count)
        depth = self.nest([v], 1)
        self.e.axes = [v]
        place = f"T.Ramp({v.name} * 4, 1, 4)"
        if is_new and self.chance(0.3):
            place = f"T.Ramp({v.name}, {count}, 4)" if self.chance(0.5) else f"T.Ramp({v.name} * 4 + 3, -1, 4)"
        last = int(source.shape[-1])
        steps = [step for step in (1, 2, 3) if 3 * step < last]
        step = self.rng.choice(steps)
        first = self.e.index(last - 3 * step, 0, last - 3 * step)
        lanes = f"T.Ramp({first}, {step}, 4)"
        outer = [self.e.index(extent, 0, int(extent)) for extent in source.shape[:-1]]
        read = f"{source.name}[{', '.join([*outer, lanes])}]"
        value = self.e.value(source.dtype, 1)
        joined = self.rng.choice(["T.max({a}, {b})", "T.min({b}, {a})", "T.Select({a} > {b}, {a}, {b})"])
        text = joined.format(a=read, b=f"T.Broadcast({value.text}, 4)") if self.chance(0.7) else read
        if masked:
            mask = f'T.get_active_lane_mask("boolx4", {v.name} * 4, {target.shape[0]})'
            self.add(depth, f"{target.name}.vstore([{place}], {text}, predicate={mask})")
        else:
            self.add(depth, f"{target.name}[{place}] = {text}")
        self.settle(target, is_new, max(source.bound, value.bound))
        return None

    def viewed(self) -> None:
        """What a view shows of a buffer that is there, rows of it, with the strides that it has."""
        candidates = self.complete()
        if not candidates:
            return self.elementwise()
        source = self.rng.choice(candidates)
        rows, inner = int(source.shape[0]), [int(extent) for extent in source.shape[1:]]
        height = self.rng.choice([n for n in range(1, rows + 1) if rows % n == 0])
        shape = [height, *inner]
        buffer = Buffer(self.name("B"), source.dtype, [rows // height, *shape])
        v = Axis(self.name("v"), rows // height)
        depth = self.nest([v], 1)
        names = [self.name("s") for _ in shape]
        for name in names:
            self.add(depth, f"{name} = T.int32()")
        view = self.name("W")
        region = ", ".join([f"{v.name} * {height}:{v.name} * {height} + {height}", *(f"0:{n}" for n in inner)])
        strides = f"strides=[{', '.join(names)}], offset_factor=1"
        extents = "".join(f"{extent}, " for extent in shape)
        self.add(depth, f"{view} = T.match_buffer({source.name}[{region}], ({extents}), {source.dtype!r}, {strides})")
        axes = [Axis(self.name("v"), extent) for extent in shape]
        body = self.nest(axes, depth)
        self.e.axes = [v, *axes]
        self.e.buffers = [b for b in self.e.buffers if b is not source]
        value = self.e.value(source.dtype, 1)
        places = [
            axis.name if self.chance(0.7) else f"{int(axis.extent) - 1} - {axis.name}" for axis in axes
        ]  # fmt: skip
        read = f"{view}[{', '.join(places)}]"
        joined = f"({read} or {value.text})" if source.dtype == "bool" else f"T.max({read}, {value.text})"
        indices = ", ".join([v.name, *(axis.name for axis in axes)])
        self.add(body, f"{buffer.name}[{indices}] = {joined}")
        self.settle(buffer, True, max(source.bound, value.bound))
        return None

    def used_inside(self) -> None:
        """A sum, and a block with blocks inside that uses it: at an axis of its own, or at one of those inside."""
        dtype = self.rng.choice([d for d in self.dtypes if d != "bool"] or ["int32"])
        outer, inner = self.rng.choice([2, 3, 8, 12]), self.rng.choice([2, 4, 8, 16])
        v, w = Axis(self.name("v"), outer), Axis(self.name("v"), inner)
        shape: list[Extent] = [[outer], [inner], [outer, inner]][self.rng.randrange(3)]
        total = Buffer(self.name("B"), dtype, shape)
        axes = [Axis(self.name("v"), extent) for extent in shape]
        k = Axis(self.name("k"), self.rng.choice([2, 3, 4]), is_reduction=True)
        depth = self.nest([*axes, k], 1)
        access = f"{total.name}[{', '.join(axis.name for axis in axes)}]"
        self.e.axes = list(axes)
        self.add(depth, "with T.init():")
        self.add(depth + 1, f"{access} = {self.e.constant(dtype).text}")
        self.e.axes = [*axes, k]
        value = self.e.value(dtype, 1)
        lines, bound = self.update(total, access, value.text, value.bound, 4)
        for line in lines:
            self.add(depth, line)
        total.bound = max(bound, 64.0)
        result = Buffer(self.name("B"), dtype, [outer, inner])
        depth = self.nest([v], 1)
        body = self.nest([w], depth)
        own = {outer: v.name} if shape == [outer] else {inner: w.name}
        places = [v.name, w.name] if len(shape) == 2 else [own[int(shape[0])]]
        self.e.axes = [v, w]
        other = self.e.value(dtype, 1)
        read = f"{total.name}[{', '.join(places)}]"
        self.add(body, f"{result.name}[{v.name}, {w.name}] = T.max({read}, {other.text})")
        self.hidden.append(total)
        self.settle(result, True, max(total.bound, other.bound))

    def recurrence(self) -> None:
        """A line of elements that are made of those before them, forward or backward; at times several such lines, or
        one whose first elements a loop of their own sets."""
        dtype = self.rng.choice([d for d in self.dtypes if d != "bool"] or ["int32"])
        length, taps = self.rng.choice([5, 6, 8, 12, 20]), self.rng.choice([1, 1, 2, 3])
        rows = self.rng.choice([0, 0, 2, 3])
        buffer = Buffer(self.name("B"), dtype, [*([rows] if rows else []), length])
        depth, outer = 1, []
        if rows:
            outer = [Axis(self.name("i"), rows)]
            self.add(depth, f"for {outer[0].name} in range({rows}):")
            depth += 1
        is_backward, starts_apart = self.chance(0.3), self.chance(0.5)
        self.e.axes = list(outer)
        first = self.e.value(dtype, 1)

        def element(place: str) -> str:
            place = f"{length - 1} - ({place})" if is_backward else place
            return f"{buffer.name}[{', '.join([*(axis.name for axis in outer), place])}]"

        if starts_apart:
            start = self.name("i")
            self.add(depth, f"for {start} in range({taps}):")
            self.add(depth + 1, f"{element(start)} = {first.text}")
        loop = Axis(self.name("i"), length - taps if starts_apart else length)
        self.add(depth, f"for {loop.name} in range({loop.extent}):")
        self.e.axes = [*outer, loop]
        value = self.e.value(dtype, 1)
        place = plus(loop.name, taps) if starts_apart else loop.name
        before = [element(f"{place} - {back}") for back in range(1, taps + 1) if back in (1, taps) or self.chance(0.5)]
        joined = before[0]
        for other in before[1:]:
            joined = f"T.{self.rng.choice(['max', 'min'])}({joined}, {other})"
        bound = max(first.bound, value.bound)
        if dtype not in FLOATS or (self.rule == "exact" and bound * (length + 1) < EXACT[dtype]):
            joined, bound = f"{joined} + {value.text}", bound * (length + 1)
        else:
            joined = f"T.max({joined}, {value.text})"
        if not starts_apart:
            joined = f"T.if_then_else({loop.name} < {taps}, {first.text}, {joined})"
        self.add(depth + 1, f"{element(place)} = {joined}")
        self.settle(buffer, True, bound)

    def ragged(self) -> None:
        """A block under loops whose extents are read from data, which reach into all of what is there, or less."""
        index = self.e.index_buffer
        candidates = [b for b in self.complete() if len(b.shape) <= 2]
        if index is None or not candidates:
            return
        buffer = self.rng.choice(candidates)
        loops, axes = [], [Axis(self.name("v"), int(extent)) for extent in buffer.shape]
        for depth, axis in enumerate(axes, 1):
            place = self.rng.choice(["0", "1", *(f"{loop} % {index.shape[0]}" for loop in loops)])
            read = f"{index.name}[{place}]"
            # Of the latter two, nothing says how large they are. They never leave int32: extents must not.
            beyond = f"T.max(T.max({read}, 0) - {axis.extent}, 0)"
            extent = self.rng.choice(
                [
                    f"T.min({read}, {axis.extent})",
                    f"T.min({read}, T.max({index.name}[2], {axis.extent})) - {beyond}",
                    f"T.if_then_else({read} > {axis.extent}, {axis.extent}, {read})",
                ]
            )
            if axis is axes[0] and self.rng.random() < 0.3:
                extent = str(axis.extent)
            loops.append(self.name("i"))
            self.add(depth, f"for {loops[-1]} in range({extent}):")
        self.add(len(axes) + 1, f'with T.block("{self.name("S")}"):')
        for axis, loop in zip(axes, loops, strict=True):
            self.add(len(axes) + 2, f"{axis.name} = T.axis.spatial({axis.extent}, {loop})")
        self.e.axes = axes
        value = self.value_for(buffer, 1)
        self.add(len(axes) + 2, f"{buffer.name}[{', '.join(axis.name for axis in axes)}] = {value.text}")
        self.settle(buffer, False, max(buffer.bound, value.bound))

    # ---- programs for a GPU

    def threads(self) -> None:
        """A buffer whose elements blocks and threads compute, one each."""
        counts = [self.rng.choice([2, 3, 4]) for _ in range(self.rng.choice([1, 2]))]
        axes = self.rng.sample(THREADS, len(counts))
        buffer = Buffer(self.name("B"), self.rng.choice(self.dtypes), [product(list(counts))])
        loops = [self.name("i") for _ in counts]
        for depth, (loop, count, axis) in enumerate(zip(loops, counts, axes, strict=True), 1):
            self.add(depth, f'for {loop} in T.thread_binding({count}, thread="{axis}"):')
        depth = len(loops) + 1
        v = Axis(self.name("v"), int(buffer.shape[0]))
        self.add(depth, f'with T.block("{self.name("S")}"):')
        place = loops[0] if len(loops) == 1 else f"{loops[0]} * {counts[1]} + {loops[1]}"
        self.add(depth + 1, f"{v.name} = T.axis.spatial({v.extent}, {place})")
        self.e.axes = [v]
        if self.chance(0.3) and (buffer.dtype not in FLOATS or self.rule != "exact"):
            k = Axis(self.name("t"), 3)
            self.add(depth + 1, f"{buffer.name}[{v.name}] = {self.e.constant(buffer.dtype).text}")
            self.e.axes.append(k)
            value = self.e.value(buffer.dtype, 1)
            self.add(depth + 1, f"for {k.name} in range({k.extent}):")
            access = f"{buffer.name}[{v.name}]"
            joined = f"{access} or {value.text}" if buffer.dtype == "bool" else f"T.max({access}, {value.text})"
            self.add(depth + 2, f"{access} = {joined}")
        else:
            value = self.e.value(buffer.dtype, 2)
            self.add(depth + 1, f"{buffer.name}[{v.name}] = {value.text}")
        self.settle(buffer, True, max(value.bound, 4.0))

    def fetched(self) -> None:
        """What the threads of a block fetch together into memory that they share, and then read in another order."""
        candidates = self.complete()
        if not candidates:
            return self.threads()
        source = self.rng.choice(candidates)
        groups, count = self.rng.choice([1, 2, 3]), self.rng.choice([2, 3, 4])
        shared = Buffer(self.name("B"), source.dtype, [groups, count])
        buffer = Buffer(self.name("B"), source.dtype, [groups, count])
        group = self.name("i")
        self.add(1, f'for {group} in T.thread_binding({groups}, thread="blockIdx.x"):')
        visible = list(self.e.buffers)
        for step, target in enumerate([shared, buffer]):
            loop, v, w = self.name("i"), Axis(self.name("v"), groups), Axis(self.name("v"), count)
            self.add(2, f'for {loop} in T.thread_binding({count}, thread="threadIdx.x"):')
            self.add(3, f'with T.block("{self.name("S")}"):')
            self.add(4, f'{v.name}, {w.name} = T.axis.remap("SS", [{group}, {loop}])')
            self.e.axes = [v, w]
            if step == 0:
                value = self.e.load(source)
            else:
                place = self.rng.choice([f"{count - 1} - {w.name}", f"({w.name} + 1) % {count}", w.name])
                read, value = f"{shared.name}[{v.name}, {place}]", self.e.value(source.dtype, 1)
                joined = f"({read} and {value.text})" if source.dtype == "bool" else f"T.min({read}, {value.text})"
                value.text, value.bound = joined, max(value.bound, source.bound)
            self.add(4, f"{target.name}[{v.name}, {w.name}] = {value.text}")
        self.e.buffers = visible
        shared.scope = self.rng.choice(["shared", "shared", "global"])
        self.hidden.append(shared)
        self.settle(buffer, True, max(value.bound, source.bound))
        return None

    def reduced_by_threads(self) -> None:
        """A reduction whose steps threads take, a part each."""
        dtype = self.rng.choice([d for d in self.dtypes if d != "bool"] or ["int32"])
        rows, steps = self.rng.choice([1, 2, 3]), self.rng.choice([2, 4])
        buffer = Buffer(self.name("B"), dtype, [rows])
        i, j = self.name("i"), self.name("i")
        outer = f'T.thread_binding({rows}, thread="blockIdx.x")' if self.chance(0.5) else f"range({rows})"
        self.add(1, f"for {i} in {outer}:")
        self.add(2, f'for {j} in T.thread_binding({steps}, thread="threadIdx.x"):')
        v, k = Axis(self.name("v"), rows), Axis(self.name("k"), steps, is_reduction=True)
        self.add(3, f'with T.block("{self.name("S")}"):')
        self.add(4, f'{v.name}, {k.name} = T.axis.remap("SR", [{i}, {j}])')
        self.add(4, "with T.init():")
        self.add(5, f"{buffer.name}[{v.name}] = {self.e.constant(dtype).text}")
        self.e.axes = [v, k]
        value = self.e.value(dtype, 1)
        access = f"{buffer.name}[{v.name}]"
        lines, bound = self.update(buffer, access, value.text, value.bound, steps)
        for line in lines:
            self.add(4, line)
        self.settle(buffer, True, max(bound, 4.0))
