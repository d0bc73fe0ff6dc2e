"""Products of matrix tiles by the AMX instructions of x86, which add products of 16 rows and 16 columns at once.

One intrinsic computes all sums of a block of rows and some columns, zeros to results, so that the tiles of sums stay in
registers and the unit is configured once. It is created on first use of its name, which determines what it computes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.tensor_intrin.table import TensorIntrin

__all__ = ["TileProduct", "make_if_named"]

#: sums of one row of a tile
LANES = 16
_PREFIX = "amx_product "
_BYTES = {"int8": 1, "uint8": 1, "bfloat16": 2, "float16": 2}

#: which axes an index adds up, and how often each: ((0, 1), (2, 1)) is i + rh where rh is the third axis
Index = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TileProduct:
    """C[rows, columns] = sum of A[rows, reductions] * B[reductions, columns], one program for each choice.

    The axes are numbered: those of rows, then that of columns, then those summed over, of which the last is
    contiguous in A.

    Attributes:
        types: data types of A, B and C.
        rows: how far the axes of rows run.
        columns: a multiple of 16.
        sums: how far the axes run that are summed over; the last is a multiple of `depth` groups.
        a: each index of A, the last the last axis alone.
        b: the axes between the panels of 16 columns and the groups in B, which is
            [columns / 16, *b, groups, 16, elements of a group]; None is an index that stays.
        c: the axis of each index of C, the last that of columns; None is an index that stays.
        along: the axis of rows that a tile extends along, in `height` steps.
        height: rows of a tile, at most 16.
        pair: the axis of rows along which two tiles are computed together, or None.
        wide: tiles of columns that are computed together.
        depth: groups of a tile, at most 16.
    """

    types: tuple[str, str, str]
    rows: tuple[int, ...]
    columns: int
    sums: tuple[int, ...]
    a: tuple[Index, ...]
    b: tuple[int | None, ...]
    c: tuple[int | None, ...]
    along: int
    height: int
    pair: int | None
    wide: int
    depth: int

    @property
    def name(self) -> str:
        """Return the name in the table of intrinsics, from which any process can create the intrinsic."""
        return _PREFIX + json.dumps(asdict(self), separators=(",", ":"))

    @property
    def group(self) -> int:
        """Return the number of elements of A that one sum takes at once: those of 32 bits."""
        return 4 // _BYTES[self.types[0]]

    def register(self) -> str:
        """Add it to the table, unless it is there; return its name.

        Raises:
            ArgumentError: tiles do not fit the axes or the unit.
        """
        if self.name not in TensorIntrin.names():
            if not self._fits():
                raise ArgumentError.of("tensor-intrin/tiles", f"the tiles of {self} do not fit its axes, or the unit")
            from tilewright.script import from_source

            desc, impl = from_source(self._description()), from_source(self._implementation())
            TensorIntrin.register(self.name, desc, impl, True, features=_core.instruction_features(impl))
        return self.name

    def _fits(self) -> bool:
        """Return whether tiles divide the axes, and the description and the implementation touch the same elements."""
        columns, last = len(self.rows), len(self.rows) + len(self.sums)
        own = [columns, self.along, self.pair]
        high = 1 if self.pair is None else 2
        return (
            min(*self.rows, self.columns, *self.sums, self.wide) >= 1
            and (1 <= self.height <= 16 and 1 <= self.depth <= 16 and high * self.wide + high < 8)
            and (0 <= self.along < columns and (self.pair is None or 0 <= self.pair < columns))
            and all(extent % step == 0 for extent, step in zip(self.rows, self._row_steps(), strict=True))
            and self.columns % (LANES * self.wide) == 0
            and self.sums[-1] % (self.depth * self.group) == 0
            and (self.c[-1] == columns and sorted(axis for axis in self.c if axis is not None) == [*range(columns + 1)])
            and self.a[-1] == ((last, 1),)
            and all(0 <= axis < last and axis != columns and step > 0 for index in self.a[:-1] for axis, step in index)
            and any(axis == self.along for index in self.a[:-1] for axis, _ in index)
            and all(axis is None or (0 <= axis < last and axis not in own) for axis in self.b)
        )

    # ---- what it computes

    def _axes(self) -> tuple[list[str], list[int]]:
        names = [f"i{n}" for n in range(len(self.rows))] + ["j"] + [f"k{n}" for n in range(len(self.sums))]
        return names, [*self.rows, self.columns, *self.sums]

    def _shapes(self) -> tuple[list[int], list[int], list[int]]:
        _, extents = self._axes()
        a = [1 + sum(step * (extents[axis] - 1) for axis, step in index) for index in self.a]
        between = [1 if axis is None else extents[axis] for axis in self.b]
        b = [self.columns // LANES, *between, self.sums[-1] // self.group, LANES, self.group]
        return a, b, [1 if axis is None else extents[axis] for axis in self.c]

    def _regions(self) -> list[str]:
        """Return the lines that declare what is read and written."""
        a, b, c = (", ".join(f"0:{extent}" for extent in shape) for shape in self._shapes())
        return [f"        T.reads(A[{a}], B[{b}])", f"        T.writes(C[{c}])"]

    def _description(self) -> str:
        names, extents = self._axes()
        shapes = self._shapes()
        results = len(self.rows) + 1
        total = self.types[2]
        sums = ", ".join("0" if axis is None else "v" + names[axis] for axis in self.c)
        left = ", ".join(
            " + ".join("v" + names[axis] + (f" * {step}" if step > 1 else "") for axis, step in index) or "0"
            for index in self.a
        )
        last = "v" + names[-1]
        between = ["0" if axis is None else "v" + names[axis] for axis in self.b]
        right = ", ".join([f"vj // {LANES}", *between, f"{last} // {self.group}", f"vj % {LANES}"])
        right += f", {last} % {self.group}"

        def nest(block: str, axes: int, kinds: str) -> list[str]:
            loops = ", ".join(names[:axes])
            lengths = ", ".join(str(extent) for extent in extents[:axes])
            return [
                f"        for {loops} in T.grid({lengths}):",
                f'            with T.block("{block}"):',
                f"                {', '.join('v' + name for name in names[:axes])} = "
                f'T.axis.remap("{kinds}", [{loops}])',
            ]

        return "\n".join(
            [
                "@T.prim_func",
                "def product(a: T.handle, b: T.handle, c: T.handle):",
                *(
                    f'    {name.upper()} = T.match_buffer({name}, {tuple(shape)}, "{dtype}", offset_factor=1)'
                    for name, shape, dtype in zip("abc", shapes, self.types, strict=True)
                ),
                '    with T.block("root"):',
                *self._regions(),
                *nest("init", results, "S" * results),
                f"                C[{sums}] = T.{total}(0)",
                *nest("update", len(names), "S" * results + "R" * len(self.sums)),
                f'                C[{sums}] = C[{sums}] + T.Cast("{total}", A[{left}]) * T.Cast("{total}", B[{right}])',
            ]
        )

    # ---- how it is written

    def _implementation(self) -> str:
        a_shape, b_shape, c_shape = self._shapes()
        high, wide = (1 if self.pair is None else 2), self.wide
        sums = [[x * wide + y for y in range(wide)] for x in range(high)]
        # The tiles of operands: as many as there are left.
        free = list(range(high * wide, 8))
        lefts, rest = free[:high], free[high:]
        rights = [rest[y % len(rest)] for y in range(wide)]
        dot = str(_core.dot_instruction(*self.types, tiles=True))

        def place(name: str, indices: Sequence[str]) -> str:
            moved = [f"({index}) * {name}{n}" for n, index in enumerate(indices[:-1]) if index != "0"]
            return " + ".join([*moved, indices[-1]])

        def load(tile: int, buffer: str, mask: str, where: str, row: str, operation: str) -> str:
            size = 4 if buffer == "C" else _BYTES[self.types[0]]
            return (
                f'T.evaluate(T.call_llvm_intrin("void", "llvm.x86.{operation}", T.int8({tile}), '
                f'{buffer}.access_ptr("{mask}", offset={where}), T.Cast("int64", ({row}) * {size})))'
            )

        def call(operation: str, *tiles: int) -> str:
            given = "".join(f", T.int8({tile})" for tile in tiles)
            return f'T.evaluate(T.call_llvm_intrin("void", "{operation}"{given}))'

        lines = [
            "@T.prim_func",
            "def product(a: T.handle, b: T.handle, c: T.handle):",
            *self._strided("A", a_shape, ["1"]),
            *self._strided("B", b_shape, [str(self.group), "1"]),
            *self._strided("C", c_shape, ["1"]),
            '    with T.block("root"):',
            *self._regions(),
            '        setup = T.alloc_buffer((16,), "int32")',
            f"        setup[0:16] = {self._configuration(high, wide, lefts, set(rights))}",
            '        T.evaluate(T.call_llvm_intrin("void", "llvm.x86.ldtilecfg", setup.access_ptr("r")))',
        ]
        depth = 2

        def loop(name: str, count: int) -> None:
            nonlocal depth
            lines.append(f"{'    ' * depth}for {name} in range({count}):")
            depth += 1

        def add(more: list[str]) -> None:
            lines.extend("    " * depth + line for line in more)

        def added(index: Index, x: int) -> str:
            """Return an index of A at the first element of a tile."""
            terms = (value(axis, x) if step == 1 else f"({value(axis, x)}) * {step}" for axis, step in index)
            return " + ".join(terms) or "0"

        def value(axis: int, x: int) -> str:
            if axis < len(self.rows):
                return self._row(axis, x)
            n = axis - len(self.rows) - 1
            return f"k{n} * {self.depth * self.group}" if n == len(self.sums) - 1 else f"k{n}"

        tiles = self._tiles_of_rows()
        columns = "tj"
        loop(columns, self.columns // (LANES * wide))
        for n, count in enumerate(tiles):
            loop(f"t{n}", count)
        add([call("llvm.x86.tilezero", tile) for row in sums for tile in row])
        outer = depth
        for n, extent in enumerate(self.sums):
            loop(f"k{n}", extent // (self.depth * self.group if n == len(self.sums) - 1 else 1))
        a_row = " + ".join(f"{step} * A{n}" for n, index in enumerate(self.a) for ax, step in index if ax == self.along)
        # What rows need is not used again before it is evicted from L1; B stays there.
        add(
            [
                load(lefts[x], "A", "r", place("A", [added(index, x) for index in self.a]), a_row, "tileloaddt164")
                for x in range(high)
            ]
        )
        groups = len(b_shape) - 3
        last = f"k{len(self.sums) - 1} * {self.depth}"
        for y in range(wide):
            between = ["0" if axis is None else value(axis, 0) for axis in self.b]
            where = place("B", [f"{columns} * {wide} + {y}", *between, last, "0", "0"])
            add([load(rights[y], "B", "r", where, f"B{groups}", "tileloadd64")])
            add([call(dot, sums[x][y], lefts[x], rights[y]) for x in range(high)])
        depth = outer
        along = next(n for n, axis in enumerate(self.c) if axis == self.along)
        for x, row in enumerate(sums):
            for y, tile in enumerate(row):
                where = place("C", self._result(columns, x, y))
                add([load(tile, "C", "w", where, f"C{along}", "tilestored64")])
        lines.append('        T.evaluate(T.call_llvm_intrin("void", "llvm.x86.tilerelease"))')
        return "\n".join(lines)

    def _strided(self, name: str, shape: Sequence[int], last: list[str]) -> list[str]:
        """Return the lines that declare a buffer whose last strides are known."""
        known = dict(zip(range(len(shape) - len(last), len(shape)), last, strict=True))
        own = [f"{name}{n}" for n in range(len(shape)) if n not in known]
        lines = [f"    {stride} = T.int32()" for stride in own]
        strides = [*own, *known.values()]
        dtype = self.types["ABC".index(name)]
        lines.append(
            f'    {name} = T.match_buffer({name.lower()}, {tuple(shape)}, "{dtype}", '
            f"strides=[{', '.join(strides)}], offset_factor=1)"
        )
        return lines

    def _row_steps(self) -> list[int]:
        """Return how far each row axis advances from tile to tile."""
        steps = [1] * len(self.rows)
        steps[self.along] = self.height
        if self.pair is not None:
            steps[self.pair] *= 2
        return steps

    def _tiles_of_rows(self) -> list[int]:
        return [extent // step for extent, step in zip(self.rows, self._row_steps(), strict=True)]

    def _row(self, axis: int, x: int) -> str:
        """Return the first value of a row axis in tile number x of a pair."""
        place = f"t{axis} * 2 + {x}" if axis == self.pair else f"t{axis}"
        return f"({place}) * {self.height}" if axis == self.along else place

    def _result(self, columns: str, x: int, y: int) -> list[str]:
        """Return the indices of the first element of a tile of results."""
        rows = ["0" if axis is None else self._row(axis, x) for axis in self.c[:-1]]
        return [*rows, f"({columns} * {self.wide} + {y}) * {LANES}"]

    def _configuration(self, high: int, wide: int, lefts: Sequence[int], rights: set[int]) -> str:
        """Return the 64 bytes of a tile configuration: the palette, then bytes per row and rows of each tile (Intel's
        manual of instruction set extensions, LDTILECFG)."""
        widths, heights = [0] * 8, [0] * 8
        for tile in range(high * wide):
            widths[tile], heights[tile] = 4 * LANES, self.height
        for tile in lefts:
            widths[tile], heights[tile] = 4 * self.depth, self.height
        for tile in rights:
            widths[tile], heights[tile] = 4 * LANES, self.depth
        data = bytearray(64)
        data[0] = 1
        for tile in range(8):
            data[16 + 2 * tile] = widths[tile]
            data[48 + tile] = heights[tile]
        words = [int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, 64, 4)]
        return f"T.Shuffle([{', '.join(f'T.int32({word})' for word in words)}], {list(range(16))})"


def make_if_named(name: str) -> None:
    """Register the product that a name encodes, if it is the name of one."""
    if not name.startswith(_PREFIX):
        return
    try:
        fields = json.loads(name.removeprefix(_PREFIX))
        product = TileProduct(**{key: _as_tuple(value) for key, value in fields.items()})
        if product.name == name and _core.dot_instruction(*product.types, tiles=True):
            product.register()
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
        return  # a name that only looks like one


def _as_tuple(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise TypeError(f"{value} is not an integer")
    return tuple(_as_tuple(each) for each in value) if isinstance(value, list) else value
