"""Parts of random programs: each writes one or two buffers, new ones or such that exist."""

from __future__ import annotations

from fuzz.expressions import EXACT, FLOATS, INTS, SMALL, Axis, Buffer, Extent, limits
from fuzz.writer import EXTENTS, LARGEST_NEST, Writer, plus, product


class Stages(Writer):
    """One method for each sort of part."""

    def elementwise(self, target: Buffer | None = None) -> None:
        """C[f(v)] = expression: plain, under a condition, masked, in place, through a variable, or twice."""
        buffer, is_new = (target, False) if target else self.target()
        axes, indices = self.axes_for(buffer, is_new)
        depth = self.nest(axes, 1, by_data=not is_new)
        self.e.axes = axes
        access = f"{buffer.name}[{', '.join(indices)}]"
        self.let(depth)
        value = self.value_for(buffer, 1 if self.oddness == 0 else 3)
        draw = self.rng.random() if self.chance(self.oddness) else 1.0
        if draw < (0.5 if self.e.lets else 0.12) and not is_new:
            self.add(depth, f"if {self.e.value('bool', 2).text}:")
            self.add(depth + 1, f"{access} = {value.text}")
            if self.chance(0.3):
                other = self.value_for(buffer, 2)
                self.add(depth, "else:")
                self.add(depth + 1, f"{access} = {other.text}")
                value.bound = max(value.bound, other.bound)
        elif draw < 0.18 and not is_new:
            self.add(depth, f"{access} = T.Select({self.e.value('bool', 2).text}, {value.text}, {access})")
        elif draw < 0.28 and not is_new and self.grows(buffer, product([a.extent for a in axes]), value):
            before = self.neighbor(buffer, indices) if self.chance(0.3) else access
            self.add(depth, f"{access} = {before} {self.accumulate(buffer.dtype, value.text)}")
            value.bound = buffer.bound + product([a.extent for a in axes]) * value.bound
        elif draw < 0.36:
            self.add(depth, f"{self.name('x')}: T.{buffer.dtype} = {value.text}")
            self.add(depth, f"{access} = x{self.names}")
        elif draw < 0.40:
            self.add(depth, f"{access} = {value.text}")
            again = self.value_for(buffer, 1)
            self.add(depth, f"{access} = T.max({access}, {again.text})")
            value.bound = max(value.bound, again.bound)
        else:
            self.add(depth, f"{access} = {value.text}")
        self.settle(buffer, is_new, value.bound)

    def neighbor(self, buffer: Buffer, indices: list[str]) -> str:
        """The element before, in the first dimension: a chain from iteration to iteration."""
        if not buffer.shape:
            return f"{buffer.name}[()]"
        moved = f"({indices[0]} + {self.rng.choice([1, 1, 2])}) % ({buffer.shape[0]})"
        return f"{buffer.name}[{', '.join([moved, *indices[1:]])}]"

    def reduction(self) -> None:
        """A reduction with init: sums, maxima, products, bits; at times no commutative one, or under a condition."""
        buffer, is_new = self.target()
        axes, indices = self.axes_for(buffer, is_new)
        inner = [
            Axis(self.name("k"), self.reduced_extent(), is_reduction=True) for _ in range(self.rng.choice([1, 1, 2]))
        ]
        times = product([axis.extent for axis in inner])
        if product([axis.extent for axis in axes]) * times > 2 * LARGEST_NEST:
            inner, times = inner[:1], product([inner[0].extent])
        order = [*axes, *inner]
        if self.chance(0.2):
            self.rng.shuffle(order)
        depth = self.nest(order, 1, by_data=not is_new)
        access = f"{buffer.name}[{', '.join(indices)}]"
        self.e.axes = list(axes)
        init = self.e.constant(buffer.dtype) if self.chance(0.75) else self.e.value(buffer.dtype, 1)
        if buffer.dtype in FLOATS and self.rule == "exact":
            init.bound = min(init.bound, 64.0)
        has_init = is_new or self.chance(0.85)
        if has_init:
            self.add(depth, "with T.init():")
            self.add(depth + 1, f"{access} = {init.text}")
        self.e.axes = order
        self.let(depth)
        value = self.value_for(buffer, 2, sums=True)
        update, bound = self.update(buffer, access, value.text, value.bound, times)
        if self.chance(0.4 if self.e.lets else 0.08):
            self.add(depth, f"if {self.e.value('bool', 2).text if self.chance(0.6) else f'{access} < {value.text}'}:")
            depth += 1
        for line in update:
            self.add(depth, line)
        self.settle(buffer, is_new, max(bound, init.bound if has_init else buffer.bound))

    def reduced_extent(self) -> Extent:
        if self.is_symbolic and self.chance(0.5):
            return self.rng.choice(["n", "m"])
        return self.rng.choice([1, 2, 3, 4, 5, 6, 8])

    def update(self, buffer: Buffer, access: str, text: str, bound: float, times: int) -> tuple[list[str], float]:
        """The lines of an update, and how large the result may be."""
        dtype = buffer.dtype
        order_free = [f"{access} = T.max({access}, {text})", f"{access} = T.min({access}, {text})"]
        if dtype == "bool":
            joined = self.rng.choice(["and", "or"])
            return [f"{access} = {access} {joined} {text}"], 1.0
        if dtype in INTS:
            low, high = limits(dtype)
            lines = [
                *order_free,
                *[f"{access} = {access} + {text}"] * 4,
                f"{access} = {access} * {text}",
                f"{access} = {access} - {text}",
                f"{access} = {access} * T.{dtype}(2) + {text}",
                f"{access} = {text} - {access}",
                f"{access} = T.shift_left({access}, T.{dtype}(1)) + {text}",
                f"{access} = T.truncdiv({access}, T.{dtype}(2)) + {text}",
                f"{access} = T.bitwise_xor({access} * T.{dtype}(3), {text})",
                f"{access} = T.if_then_else({text} > T.{dtype}(1), {text}, {access})",
                *[f"{access} = T.bitwise_{op}({access}, {text})" for op in ("and", "or", "xor")],
                f"{access} = T.Select({text} < {access}, {text}, {access})",
            ]
            chosen = self.rng.choice(lines)
            if self.chance(0.06):
                name = self.name("x")
                return [f"{name}: T.{dtype} = T.max({access}, {text})", f"{access} = {access} + {name}"], 0.0
            return [chosen], 0.0
        # The init has at most 64, what is in the buffer at most `bound`; nests may run the update twice as often.
        reach = max(buffer.bound, 64.0) + 4 * times * bound
        if self.rule == "exact" and reach < EXACT[dtype] and self.chance(0.8):
            if self.chance(0.06) and times * 8 < 20:
                return [f"{access} = {text} - {access}"], reach
            return [f"{access} = {access} {self.rng.choice('+++-')} {text}"], reach
        return [self.rng.choice(order_free)], max(buffer.bound, 64.0, bound)

    def argmax(self) -> None:
        """A reduction of pairs: the largest value and where it is."""
        dtype = self.rng.choice([d for d in self.dtypes if d != "bool"] or ["float32"])
        extent: Extent = self.rng.choice(EXTENTS)
        place = Buffer(self.name("B"), "int32", [extent])
        best = Buffer(self.name("B"), dtype, [extent])
        v, k = Axis(self.name("v"), extent), Axis(self.name("k"), self.rng.choice([2, 3, 4, 6]), is_reduction=True)
        depth = self.nest([v, k], 1)
        self.e.axes = [v, k]
        value = self.e.value(dtype, 1)
        at, top = f"{place.name}[{v.name}]", f"{best.name}[{v.name}]"
        low = f'T.{dtype}("-inf")' if dtype in FLOATS else f"T.{dtype}({limits(dtype)[0]})"
        self.add(depth, "with T.init():")
        self.add(depth + 1, f"{at} = -1")
        self.add(depth + 1, f"{top} = {low}")
        test = f"{top} >= {value.text}" if self.chance(0.5) else f"{top} > {value.text}"
        if self.chance(0.5):
            test = f"{top} > {value.text} or ({top} == {value.text} and {at} < {k.name})"
        self.add(depth, f"xp: T.int32 = T.Select({test}, {at}, {k.name})")
        self.add(depth, f"xv: T.{dtype} = T.Select({test}, {top}, {value.text})")
        self.add(depth, f"{at} = xp")
        self.add(depth, f"{top} = xv")
        self.settle(place, True, 16.0)
        self.settle(best, True, value.bound)

    def padded(self) -> None:
        """A copy that is larger than what it copies, with a constant around."""
        candidates = [b for b in self.buffers if b.box is None and b.shape]
        candidates = [b for b in candidates if all(isinstance(extent, int) for extent in b.shape)]
        if not candidates:
            return self.elementwise()
        source = self.rng.choice(candidates)
        margins = [(self.rng.choice([0, 1, 2]), self.rng.choice([0, 1, 2])) for _ in source.shape]
        shape: list[Extent] = [int(n) + low + high for n, (low, high) in zip(source.shape, margins, strict=True)]
        buffer = Buffer(self.name("B"), source.dtype, shape)
        axes = [Axis(self.name("v"), extent) for extent in shape]
        depth = self.nest(axes, 1)
        inside, indices = [], []
        for axis, extent, (low, high) in zip(axes, source.shape, margins, strict=True):
            inside += [f"{low} <= {axis.name}"] * (low > 0) + [f"{axis.name} < {int(extent) + low}"] * (high > 0)
            indices.append(f"{axis.name} - {low}" if low else axis.name)
        constant = self.e.constant(source.dtype)
        value = f"{source.name}[{', '.join(indices)}]"
        if inside:
            value = f"T.if_then_else({' and '.join(inside)}, {value}, {constant.text})"
        self.add(depth, f"{buffer.name}[{', '.join(axis.name for axis in axes)}] = {value}")
        self.settle(buffer, True, max(source.bound, constant.bound))
        return None

    def biased(self) -> None:
        """A sum, and another buffer that holds it with something added."""
        exact = [*INTS, *(FLOATS if self.rule == "exact" else [])]
        dtype = self.rng.choice([dtype for dtype in self.dtypes if dtype in exact] or ["int32"])
        shape: list[Extent] = [self.rng.choice(EXTENTS), *([self.rng.choice([2, 3, 4])] if self.chance(0.4) else [])]
        total, result = (Buffer(self.name("B"), dtype, list(shape)) for _ in range(2))
        axes = [Axis(self.name("v"), extent) for extent in shape]
        k = Axis(self.name("k"), self.rng.choice([2, 3, 4]), is_reduction=True)
        depth = self.nest([*axes, k], 1)
        self.e.axes = [*axes, k]
        term = self.e.value(dtype, 1)
        if dtype in FLOATS and 8 * term.bound >= EXACT[dtype]:
            term = self.e.constant(dtype)
        indices = ", ".join(axis.name for axis in axes)
        self.add(depth, "with T.init():")
        self.add(depth + 1, f"{total.name}[{indices}] = T.{dtype}(0)")
        self.add(depth, f"{total.name}[{indices}] = {total.name}[{indices}] + {term.text}")
        axes = [Axis(self.name("v"), extent) for extent in shape]
        indices = ", ".join(axis.name for axis in axes)
        depth = self.nest(axes, 1)
        self.e.axes = axes
        bias = self.e.value(dtype, 1)
        if dtype in FLOATS and 8 * term.bound + bias.bound >= EXACT[dtype]:
            bias = self.e.constant(dtype)
        joined = self.rng.choice([f"{total.name}[{indices}] + {bias.text}", f"{bias.text} + {total.name}[{indices}]"])
        self.add(depth, f"{result.name}[{indices}] = {joined}")
        self.hidden.append(total)
        self.settle(result, True, 8 * term.bound + bias.bound)

    def chain(self) -> None:
        """What one buffer holds, element by element, in a new one: blocks that can be moved into one another."""
        sources = [b for b in self.buffers if not b.is_param and b.box is None and b.shape]
        if not sources:
            return self.elementwise()
        source = self.rng.choice(sources)
        result = Buffer(self.name("B"), source.dtype, list(source.shape))
        axes = [Axis(self.name("v"), extent) for extent in source.shape]
        depth = self.nest(axes, 1)
        indices = ", ".join(axis.name for axis in axes)
        constant = self.e.constant(source.dtype)
        value = f"T.Select({source.name}[{indices}] == {constant.text}, {constant.text}, {source.name}[{indices}])"
        if source.dtype != "bool":
            value = f"T.{self.rng.choice(['max', 'min'])}({source.name}[{indices}], {constant.text})"
        self.add(depth, f"{result.name}[{indices}] = {value}")
        self.settle(result, True, max(source.bound, constant.bound))
        return None

    def in_place(self) -> None:
        """A buffer in place, element by element."""
        candidates = [b for b in self.buffers if b is not self.e.index_buffer and b.box is None and b.shape]
        candidates = [b for b in candidates if b.dtype != "bool"]
        if not candidates:
            return self.elementwise()
        buffer = self.rng.choice(candidates)
        axes = [Axis(self.name("v"), extent) for extent in buffer.shape]
        depth = self.nest(axes, 1)
        self.e.axes = axes
        access = f"{buffer.name}[{', '.join(axis.name for axis in axes)}]"
        value = self.value_for(buffer, 1)
        self.add(depth, f"{access} = T.max({access}, {value.text})")
        self.settle(buffer, False, max(buffer.bound, value.bound))
        return None

    def stencil(self) -> None:
        """A buffer, and a smaller one whose elements are made of neighbors in it: tiles that overlap, once it is
        computed for each of them."""
        dtype = self.rng.choice(self.dtypes)
        rank = self.rng.choice([1, 1, 2])
        inner: list[Extent] = [self.rng.choice([4, 6, 8, 8, 12] if rank == 1 else [4, 6]) for _ in range(rank)]
        reach = [self.rng.choice([1, 2, 2, 3]) for _ in range(rank)]
        source = Buffer(self.name("B"), dtype, [int(n) + r for n, r in zip(inner, reach, strict=True)])
        axes = [Axis(self.name("v"), extent) for extent in source.shape]
        depth = self.nest(axes, 1)
        self.e.axes = axes
        value = self.e.value(dtype, 1)
        self.add(depth, f"{source.name}[{', '.join(axis.name for axis in axes)}] = {value.text}")
        self.settle(source, True, value.bound)
        result = Buffer(self.name("B"), dtype, inner)
        axes = [Axis(self.name("v"), extent) for extent in inner]
        depth = self.nest(axes, 1)
        names = [axis.name for axis in axes]
        far = [plus(name, self.rng.choice([r, r, r - 1])) for name, r in zip(names, reach, strict=True)]
        near, other = f"{source.name}[{', '.join(names)}]", f"{source.name}[{', '.join(far)}]"
        joined = f"({near} or {other})" if dtype == "bool" else f"T.max({near}, {other})"
        self.add(depth, f"{result.name}[{', '.join(names)}] = {joined}")
        self.settle(result, True, value.bound)

    def scatter(self) -> None:
        """C[f(k)] += expression, where several k may meet: with a reduction axis, or (wrongly named) a spatial one."""
        candidates = [b for b in self.buffers if b.box is None and len(b.shape) == 1 and isinstance(b.shape[0], int)]
        candidates = [b for b in candidates if b is not self.e.index_buffer and self.grows(b, 64)]
        if not candidates:
            return self.elementwise()
        buffer = self.rng.choice(candidates)
        count = int(buffer.shape[0])
        axis = Axis(self.name("k"), self.rng.choice(EXTENTS), is_reduction=self.chance(0.6))
        depth = self.nest([axis], 1)
        self.e.axes = [axis]
        target = self.e.any_index(0, count) if self.chance(0.6) else self.e.index(count, 0, count)
        value = self.value_for(buffer, 1, sums=True)
        if value.bound > 64:
            value.text, value.bound = self.e.constant(buffer.dtype).text, SMALL
        access = f"{buffer.name}[{target}]"
        self.add(depth, f"{access} = {access} {self.accumulate(buffer.dtype, value.text)}")
        self.settle(buffer, False, buffer.bound + 24 * value.bound)
        return None

    def opaque(self) -> None:
        """A block over loops of its own, with regions as declared: right, wider, or (at times) wrong."""
        outer, inner = self.rng.choice([1, 2, 3]), self.rng.choice([2, 3, 4])
        dtype = self.rng.choice(self.dtypes)
        buffer = Buffer(self.name("B"), dtype, [outer * inner])
        v, t = Axis(self.name("v"), outer), Axis(self.name("t"), inner)
        depth = self.nest([v], 1)
        self.e.axes, self.e.loads = [v, t], []
        value = self.e.value(dtype, 2)
        if self.chance(0.7):
            width = inner if self.chance(0.92) else max(inner - 1, 1)
            reads = {b.name: f"{b.name}[{', '.join(self.whole(b)) or '()'}]" for b in self.e.loads}
            self.add(depth, f"T.reads({', '.join(reads.values())})")
            self.add(depth, f"T.writes({buffer.name}[{v.name} * {inner}:{v.name} * {inner} + {width}])")
        head = f"for {t.name} in range({inner}):"
        if self.chance(0.2):
            head = f"for {t.name} in {self.rng.choice(['T.unroll', 'T.vectorized'])}({inner}):"
        self.add(depth, head)
        place = self.rng.choice([t.name, f"{inner - 1} - {t.name}"])
        self.add(depth + 1, f"{buffer.name}[{v.name} * {inner} + {place}] = {value.text}")
        self.settle(buffer, True, value.bound)

    def nested(self) -> None:
        """A block with blocks inside: a tile, at times with a buffer of its own or through views."""
        outer, inner = self.rng.choice([1, 2, 3, 4]), self.rng.choice([2, 3, 4])
        dtype = self.rng.choice(self.dtypes)
        buffer = Buffer(self.name("B"), dtype, [outer * inner])
        v = Axis(self.name("v"), outer)
        depth = self.nest([v], 1)
        target, base = buffer.name, f"{v.name} * {inner} + "
        tile = f"{v.name} * {inner}:{v.name} * {inner} + {inner}"
        if self.chance(0.4):
            target, base = self.name("W"), ""
            factor = self.rng.choice(["", ", offset_factor=1", ', strides=["s"], offset_factor=1'])
            if "strides" in factor:
                self.add(depth, f"{self.name('s')} = T.int32()")
                factor = f", strides=[s{self.names}], offset_factor=1"
            view = f"{target} = T.match_buffer({buffer.name}[{tile}], ({inner},), {dtype!r}{factor})"
            self.add(depth, view)
            if self.chance(0.3):
                view, target = target, self.name("W")
                factor = self.rng.choice(["", ", offset_factor=1"])
                self.add(depth, f"{target} = T.match_buffer({view}[0:{inner}], ({inner},), {dtype!r}{factor})")
        visible = list(self.e.buffers)
        own = None
        if self.chance(0.5):
            own = Buffer(self.name("L"), dtype, [inner])
            scope = self.rng.choice(["", ', scope="local"'])
            self.add(depth, f"{own.name} = T.alloc_buffer(({inner},), {dtype!r}{scope})")
            w = Axis(self.name("v"), inner)
            body = self.nest([w], depth)
            self.e.axes = [v, w]
            value = self.e.value(dtype, 2)
            self.add(body, f"{own.name}[{w.name}] = {value.text}")
            own.bound = value.bound
            self.e.buffers = [*visible, own, own, own]
        w = Axis(self.name("v"), inner)
        if self.chance(0.25) and dtype not in FLOATS:
            k = Axis(self.name("k"), self.rng.choice([2, 3]), is_reduction=True)
            body = self.nest([w, k], depth)
            self.e.axes = [v, w]
            access = f"{target}[{base}{w.name}]"
            self.add(body, "with T.init():")
            self.add(body + 1, f"{access} = {self.e.constant(dtype).text}")
            self.e.axes = [v, w, k]
            value = self.e.value(dtype, 2)
            lines, value.bound = self.update(buffer, access, value.text, value.bound, 3)
            for line in lines:
                self.add(body, line)
        else:
            body = self.nest([w], depth)
            self.e.axes = [v, w]
            value = self.e.value(dtype, 2)
            place = self.rng.choice([w.name, w.name, f"{inner - 1} - {w.name}"])
            self.add(body, f"{target}[{base}{place}] = {value.text}")
        self.e.buffers = visible
        self.settle(buffer, True, value.bound)

    def inner_loops(self) -> None:
        """Loops inside of a block, over one dimension of what it writes; their extent may depend on data."""
        buffer, is_new = self.target()
        if not buffer.shape:
            return self.elementwise()
        last = buffer.shape[-1]
        axes, indices = self.axes_for(Buffer("", buffer.dtype, buffer.shape[:-1]), is_new=False)
        if buffer.shape[:-1] == []:
            indices = []
        if is_new and any(any(c in i for c in "*[") or i.isdigit() for i in indices):
            return self.elementwise()
        if is_new and any(axis.start or axis.extent not in buffer.shape for axis in axes):
            return self.elementwise()
        depth = self.nest(axes, 1)
        t = Axis(self.name("t"), last)
        self.e.axes = axes
        extent = f"{last}"
        if not is_new and isinstance(last, int) and self.chance(0.3):
            extent = f"T.min({self.e.any_index(0, last)} + 1, {last})"
        self.add(depth, f"for {t.name} in range({extent}):")
        self.e.axes = [*axes, t]
        self.let(depth + 1)
        value = self.value_for(buffer, 2)
        if not is_new and self.chance(0.6 if self.e.lets else 0.1):
            depth += 1
            self.add(depth, f"if {self.e.value('bool', 2).text}:")
        self.add(depth + 1, f"{buffer.name}[{', '.join([*indices, t.name])}] = {value.text}")
        self.settle(buffer, is_new, value.bound)
        return None

    def while_loop(self) -> None:
        """A block that counts in a cell of its own."""
        buffer, is_new = self.target()
        axes, indices = self.axes_for(buffer, is_new)
        depth = self.nest(axes, 1)
        cell = self.name("w")
        access = f"{buffer.name}[{', '.join(indices)}]"
        self.add(depth, f'{cell} = T.alloc_buffer((1,), "int32", scope="local")')
        self.add(depth, f"{cell}[0] = {self.rng.choice([0, 1, 2])}")
        self.e.axes = axes
        value = self.value_for(buffer, 2)
        self.add(depth, f"{access} = {value.text}")
        self.add(depth, f"while {cell}[0] < {self.rng.choice([1, 2, 3])}:")
        other = self.value_for(buffer, 1)
        self.add(depth + 1, f"{access} = T.max({access}, {other.text})")
        self.add(depth + 1, f"{cell}[0] = {cell}[0] + 1")
        self.settle(buffer, is_new, max(value.bound, other.bound))
