"""Random programs as text of a script: well defined for all arguments, mostly.

A program is a sequence of stages; each writes one or two buffers, new ones or such that exist. What a stage may do is
the list STAGES: one method each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from fuzz.evaluated import Evaluated
from fuzz.expressions import Buffer
from fuzz.formulas import Formulas
from fuzz.numbers import Numbers
from fuzz.statements import Statements as Parts
from fuzz.writer import SIZES, Program, shape

STAGES = [
    *[Parts.elementwise] * 6,
    *[Parts.reduction] * 4,
    Parts.argmax,
    Parts.padded,
    Parts.biased,
    Parts.scatter,
    Parts.opaque,
    Parts.nested,
    Parts.nested,
    Parts.inner_loops,
    Parts.while_loop,
    Parts.stencil,
    Parts.chain,
    Parts.in_place,
    *[Parts.bare] * 2,
    Parts.mixed,
    Parts.in_parts,
    Parts.kept,
    Parts.vectors,
    Parts.viewed,
]
#: Of simple programs, mostly: what steps that ask for much can be taken in.
PLAIN_STAGES = [
    *[Parts.elementwise] * 7,
    *[Parts.chain] * 2,
    *[Parts.in_place] * 2,
    *[Parts.reduction] * 2,
    *[Parts.biased] * 2,
    *[Parts.stencil] * 4,
    Parts.padded,
]
#: Of programs for a GPU.
GPU_STAGES = [*[Parts.threads] * 2, *[Parts.fetched] * 2, Parts.reduced_by_threads, Parts.elementwise]


class Drawing(Parts):
    """A program of one number."""

    def program(self) -> Program:
        params = [self.parameter() for _ in range(self.rng.choice([2, 2, 3]))]
        if self.chance(0.35):
            index = Buffer("I", "int32", [self.rng.choice([4, 6, 8])], is_param=True)
            params.append(index)
            self.e.index_buffer = index
        self.buffers += params
        for _ in range(self.rng.choice([1, 1, 2, 2, 2, 3, 3, 4])):
            self.e.buffers, self.e.axes, self.e.lets = list(self.buffers), [], []
            self.rng.choice(self.stages())(self)
        if not self.is_for_threads and self.more.random() < 0.1:
            self.e.buffers, self.e.axes, self.e.lets = list(self.buffers), [], []
            self.used_inside()
        if not self.is_for_threads and self.more.random() < 0.1:
            self.e.buffers, self.e.axes, self.e.lets = list(self.buffers), [], []
            self.recurrence()
        if not self.is_for_threads and self.more.random() < 0.3:
            self.e.buffers, self.e.axes, self.e.lets = list(self.buffers), [], []
            self.ragged()
        if self.chance(0.8) and any(not buffer.is_param for buffer in self.buffers):
            self.use_all(params)
        if self.widths.random() < 0.2:
            # Callers pass, and see, some of what one stage leaves for another.
            for buffer in self.buffers:
                if not buffer.is_param and buffer.scope == "global" and self.widths.random() < 0.6:
                    buffer.is_param = True
                    params.append(buffer)
        for buffer in [*self.buffers, *self.hidden]:
            buffer.is_wide = self.has_widths and self.widths.random() < 0.5
        header = ["@T.prim_func"]
        if self.is_symbolic or self.chance(0.05 + 0.1 * self.oddness):
            header.append(f"def main({', '.join(f'p{p.name}: T.handle' for p in params)}):")
            header += ["    n = T.int32()", "    m = T.int32()"] if self.is_symbolic else []
            # A size is known from a parameter whose extent it is.
            for param in params:
                header += self.matched(param)
        else:
            header.append(f"def main({', '.join(f'{p.name}: T.Buffer({shape(p)}, {p.dtype!r})' for p in params)}):")
        for buffer in [*self.buffers, *self.hidden]:
            if not buffer.is_param:
                scope = f", scope={buffer.scope!r}" if buffer.scope != "global" else ""
                header.append(f"    {buffer.name} = T.alloc_buffer({shape(buffer)}, {buffer.dtype!r}{scope})")
        text = "\n".join([*header, *self.lines]) + "\n"
        return Program(text, self.chance(0.5), SIZES if self.is_symbolic else [{}])

    def stages(self) -> Sequence[Callable[[Drawing], None]]:
        if self.is_for_threads and self.chance(0.7):
            return GPU_STAGES
        return STAGES if self.chance(0.3 + 0.7 * self.oddness) else PLAIN_STAGES

    def matched(self, param: Buffer) -> list[str]:
        """The lines that say what a parameter is: at times with strides, of which the caller chooses some: rows apart
        from one another, mirrored, or in another order."""
        names, strides, span = [], [], 1
        apart = bool(param.shape) and all(isinstance(extent, int) for extent in param.shape) and self.chance(0.5)
        for extent in reversed(param.shape if apart else []):
            if self.chance(0.6):
                names.append(self.name("s"))
                strides.insert(0, names[-1])
                span = 0  # what comes before it has to be chosen too
            elif span == 0:
                names.append(self.name("s"))
                strides.insert(0, names[-1])
            else:
                strides.insert(0, str(span))
                span = span * int(extent) + self.rng.choice([0, 0, 3])
        end = f", strides=({''.join(f'{stride}, ' for stride in strides)})" if strides else ""
        head = [f"    {name} = T.int32()" for name in names]
        return [*head, f"    {param.name} = T.match_buffer(p{param.name}, {shape(param)}, {param.dtype!r}{end})"]

    def parameter(self) -> Buffer:
        dtype = self.rng.choice(self.dtypes)
        buffer = Buffer(self.name("A"), dtype, self.shape(), is_param=True)
        if self.is_symbolic and not any(s in b.shape for b in self.buffers for s in ("n", "m")):
            buffer.shape = ["n", "m"] if self.names == 1 else buffer.shape
        return buffer

    def use_all(self, params: list[Buffer]) -> None:
        """A last stage that stores what the allocated buffers hold, so that it is seen."""
        temporaries = [buffer for buffer in self.buffers if not buffer.is_param]
        target = self.rng.choice(params)
        if target is self.e.index_buffer:
            return
        self.e.buffers = temporaries + [b for b in temporaries if b.dtype == target.dtype] * 2
        self.e.axes, self.e.lets = [], []
        self.elementwise(target)


def draw(seed: int) -> Program:
    """The program of a number."""
    if formulas := formulas_of(seed):
        return Program(formulas.text(), special=False, sizes=[{}])
    if evaluated := evaluated_of(seed):
        return Program(evaluated.text(), evaluated.special, sizes=[{}])
    return Drawing(seed).program()


def formulas_of(seed: int) -> Formulas | None:
    """What the program of a number is built from, if that is formulas."""
    rng = random.Random(-seed)
    return Formulas(rng) if rng.random() < 0.05 else None


def evaluated_of(seed: int) -> Evaluated | Numbers | None:
    """The program of a number, if it is one that says itself what it computes."""
    rng = random.Random(f"numbers {seed}")
    if rng.random() < 0.05:
        return Numbers(rng)
    rng = random.Random(f"evaluated {seed}")
    return Evaluated(rng) if rng.random() < 0.15 else None
