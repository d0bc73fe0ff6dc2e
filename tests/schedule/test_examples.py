"""The Before/After example that heads each file of src/schedule/primitives/ is true."""

import re
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check

FOLDER = Path(__file__).parents[2] / "src/schedule/primitives"
#: Lookups, draws and marks change no program.
WITHOUT = {path.stem for path in FOLDER.glob("*.cc") if path.stem.startswith(("get_", "sample_", "enter_"))}
#: Their examples are over sparse axes, which the programs made here do not have; test_<primitive>.py compares programs.
WITHOUT |= {"decompose_format", "lower_sparse_iter", "sparse_fuse", "sparse_reorder"}
#: Leaves a parameter as it is, which the program before it writes.
WITHOUT |= {"match_to_alloc"}


#: parameters of examples whose buffers hold integers, or are indexed by more than axes
PARAMETERS = {
    "balance": 'P: T.Buffer((9,), "int32"), B: T.Buffer((8,), "int32")',
    "reverse_cache_read": 'I: T.Buffer((8,), "int32"), A: T.Buffer((8,)), B: T.Buffer((20, 4)), C: T.Buffer((8, 4))',
    "reverse_cache_write": 'I: T.Buffer((8,), "int32"), A: T.Buffer((8, 4)), C: T.Buffer((20,))',
    "prefetch_indirect": 'I: T.Buffer((64,), "int32"), X: T.Buffer((100,)), B: T.Buffer((4, 16))',
}


@T.prim_func
def copy_desc(V: T.Buffer((4,)), W: T.Buffer((4,))):
    with T.block("root"):
        T.reads(V[0:4])
        T.writes(W[0:4])
        for i in range(4):
            with T.block("copy"):
                vi = T.axis.spatial(4, i)
                W[vi] = V[vi]


@T.prim_func
def copy_impl(V: T.Buffer((4,)), W: T.Buffer((4,))):
    with T.block("root"):
        T.reads(V[0:4])
        T.writes(W[0:4])
        W[0:4] = V[0:4]


def split_columns(text):
    """(program before, call, program after) of the example in a file's head."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("//   Before"))
    column = lines[start].index("After")
    call = lines[start][column + len("After") :].strip()
    end = next(i for i in range(start, len(lines)) if lines[i].strip() == "//")
    rows = [line.ljust(column) for line in lines[start + 1 : end]]
    before = "\n".join(row[5:column].rstrip() for row in rows).rstrip()
    after = "\n".join(row[column:].rstrip() for row in rows).rstrip()
    return before, call, after


def buffer_shapes(body):
    """Shapes of the buffers that the body does not allocate, from the axes that index them."""
    extents = {}
    for axis, extent in re.findall(r"(\w+) = T\.axis\.\w+\((\d+),", body):
        extents[axis] = extent
    for axes, loops in re.findall(r"(\w[\w, ]*) = T\.axis\.remap\(\"\w+\", \[([\w, ]+)\]\)", body):
        for axis, loop in zip(axes.split(", "), loops.split(", "), strict=True):
            extents[axis] = loop_extent(body, loop)
    allocated = re.findall(r"(\w+) = T\.alloc_buffer", body)
    shapes = {}
    for name, indices in re.findall(r"\b([A-Z]\w*)\[([\w, ]+)\]", body):
        if name not in allocated:
            shapes.setdefault(name, [extents[index] for index in indices.split(", ")])
    return shapes


def loop_extent(body, loop):
    for names, extents in re.findall(r"for ([\w, ]+) in (?:T\.)?\w+\(([\d, ]+)", body):
        if loop in names.split(", "):
            return extents.split(", ")[names.split(", ").index(loop)]
    raise KeyError(loop)


def parameters(stem, body):
    shapes = {} if stem in PARAMETERS else buffer_shapes(body)
    params = ", ".join(f"{name}: T.Buffer(({', '.join(shape)},))" for name, shape in sorted(shapes.items()))
    return PARAMETERS.get(stem, params)


def program(body, params):
    indented = "\n".join("    " + line for line in body.split("\n"))
    return from_source(f"@T.prim_func\ndef main({params}):\n{indented}\n")


class Handles(dict):
    """Names in the call: blocks by their names, loops by their variables."""

    def __init__(self, sch, body):
        super().__init__(sch=sch)
        for name in re.findall(r'T\.block\("(\w+)"\)', body):
            block = sch.get_block(name)
            self[name] = block
            for loop in sch.get_loops(block):
                self.setdefault(sch.get(loop).loop_var.name_hint, loop)


@pytest.mark.parametrize(
    "path", [p for p in sorted(FOLDER.glob("*.cc")) if p.stem not in WITHOUT], ids=lambda p: p.stem
)
def test_example(path):
    tw.TensorIntrin.register("copy_4", copy_desc, copy_impl, override=True)
    before, call, after = split_columns(path.read_text())
    params = parameters(path.stem, before)
    assert f"sch.{path.stem}(" in call
    check(program(before, params), lambda sch: eval(call, Handles(sch, before)), program(after, params))


def test_every_primitive_is_a_method():
    for path in FOLDER.glob("*.cc"):
        assert callable(getattr(tw.Schedule, path.stem)), path.stem
