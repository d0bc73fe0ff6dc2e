"""Programs for tests of heuristic schedules: products, convolutions, reductions, elementwise kernels of odd sizes."""

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.heuristics import cpu
from tilewright.script import from_source
from tilewright.support.changed_nodes import with_fields
from tilewright.task.arguments import make_arrays
from tilewright.task.specialize import specialize
from tilewright.task.task import task_of
from tilewright.testing import formulas

TARGETS = ["llvm -mcpu=skylake-avx512 -num-cores=1", "llvm -mcpu=haswell -num-cores=4"]


def here(target: str) -> tw.Target:
    """The target if this processor runs its code, else this processor with as many cores."""
    wanted, native = tw.Target(target), tw.Target("native")
    return wanted if set(wanted.features) <= set(native.features) else native.with_num_cores(wanted.num_cores)


def product(n, m, k, dtype="float32", batch=1, turned=False):
    a = te.placeholder((batch, n, k), dtype, name="A")
    b = te.placeholder((batch, m, k) if turned else (batch, k, m), dtype, name="B")
    axis = te.reduce_axis((0, k), name="k")
    right = (lambda s, j, x: b[s, j, x]) if turned else (lambda s, j, x: b[s, x, j])
    c = te.compute((batch, n, m), lambda s, i, j: te.sum(a[s, i, axis] * right(s, j, axis), axis=[axis]), name="C")
    return te.create_prim_func([a, b, c])


def with_outermost_block(name, function):
    """The function with another name of its outermost block."""
    realize = function.body
    return with_fields(function, body=with_fields(realize, block=with_fields(realize.block, name_hint=name)))


def bytes_product(n, m, k, left="uint8", turned=False):
    a = te.placeholder((n, k), left, name="A")
    b = te.placeholder((m, k) if turned else (k, m), "int8", name="B")
    r = te.reduce_axis((0, k), name="k")
    right = (lambda j: b[j, r]) if turned else (lambda j: b[r, j])
    term = lambda i, j: a[i, r].astype("int32") * right(j).astype("int32")  # noqa: E731
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(term(i, j), axis=[r]), name="C")])


def bytes_convolution(size, channels, filters):
    return te.create_prim_func(formulas.conv2d_nhwc(1, size, size, channels, filters, 3, 1, 1, 1, 1, "int8", "int32"))


def convolution(size, channels, filters, kernel=3, stride=1, pad=1, groups=1, epilogue=False):
    x = te.placeholder((1, size, size, channels), name="X")
    w = te.placeholder((kernel, kernel, channels // groups, filters), name="W")
    out = (size + 2 * pad - kernel) // stride + 1
    wide = size + 2 * pad
    inside = lambda h, v: te.all(h >= pad, h < size + pad, v >= pad, v < size + pad)  # noqa: E731
    padded = te.compute(
        (1, wide, wide, channels),
        lambda n, h, v, c: te.if_then_else(inside(h, v), x[n, h - pad, v - pad, c], 0.0),
        name="padded",
    )
    rh, rw, rc = (te.reduce_axis((0, e), name=f"r{e}_{i}") for i, e in enumerate((kernel, kernel, channels // groups)))
    first = lambda co: co // (filters // groups) * (channels // groups)  # noqa: E731
    conv = te.compute(
        (1, out, out, filters),
        lambda n, h, v, co: te.sum(
            padded[n, h * stride + rh, v * stride + rw, first(co) + rc] * w[rh, rw, rc, co], axis=[rh, rw, rc]
        ),
        name="conv",
    )
    if not epilogue:
        return te.create_prim_func([x, w, conv])
    bias = te.placeholder((filters,), name="bias")
    biased = te.compute(conv.shape, lambda n, h, v, c: conv[n, h, v, c] + bias[c], name="biased")
    relu = te.compute(conv.shape, lambda n, h, v, c: te.max(biased[n, h, v, c], 0.0), name="relu")
    return te.create_prim_func([x, w, bias, relu])


def depthwise(size, channels):
    x, w = te.placeholder((size, size, channels), name="X"), te.placeholder((3, 3, channels), name="W")
    rh, rw = te.reduce_axis((0, 3), name="rh"), te.reduce_axis((0, 3), name="rw")
    return te.create_prim_func(
        [
            x,
            w,
            te.compute(
                (size - 2, size - 2, channels),
                lambda h, v, c: te.sum(x[h + rh, v + rw, c] * w[rh, rw, c], axis=[rh, rw]),
                name="D",
            ),
        ]
    )


def transposed_convolution(size, channels, filters, kernel=4, stride=2):
    return te.create_prim_func(formulas.conv2d_transpose_nhwc(1, size, size, channels, filters, kernel, stride, 1))


def transposed_in_channels(size, channels, filters, kernel, stride):
    """Channels first, and the zeros between pixels made in the sum itself."""
    x = te.placeholder((1, channels, size, size), name="X")
    w = te.placeholder((channels, filters, kernel, kernel), name="W")
    out = (size - 1) * stride + kernel
    c = te.reduce_axis((0, channels), name="c")
    rh, rw = (te.reduce_axis((0, kernel), name=name) for name in ("rh", "rw"))

    def term(co, h, v):
        h, v = h - rh, v - rw
        pixel = te.all(h >= 0, v >= 0, h % stride == 0, v % stride == 0, h // stride < size, v // stride < size)
        return te.if_then_else(pixel, x[0, c, h // stride, v // stride], 0.0) * w[c, co, rh, rw]

    return te.create_prim_func(
        [x, w, te.compute((1, filters, out, out), lambda n, co, h, v: te.sum(term(co, h, v), axis=[c, rh, rw]), "C")]
    )


def softmax(m, n):
    x = te.placeholder((m, n), name="X")
    k, k2 = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="k2")
    top = te.compute((m,), lambda i: te.max(x[i, k], axis=[k]), name="top")
    power = te.compute((m, n), lambda i, j: te.exp(x[i, j] - top[i]), name="power")
    total = te.compute((m,), lambda i: te.sum(power[i, k2], axis=[k2]), name="total")
    return te.create_prim_func([x, te.compute((m, n), lambda i, j: power[i, j] / total[i], name="Y")])


def norm(m, n):
    x = te.placeholder((m, n), name="X")
    i, j = te.reduce_axis((0, m), name="i"), te.reduce_axis((0, n), name="j")
    c = te.compute((1,), lambda _: te.sum(x[i, j] * x[i, j], axis=[i, j]), name="C")
    return te.create_prim_func([x, te.compute((1,), lambda b: te.sqrt(c[b]), name="D")])


def column_sums(m, n):
    x, k = te.placeholder((m, n), name="X"), te.reduce_axis((0, m), name="k")
    return te.create_prim_func([x, te.compute((n,), lambda j: te.sum(x[k, j], axis=[k]), name="S")])


def windows(n, channels):
    x = te.placeholder((2 * n + 1, 2 * n + 1, channels), name="X")
    a, b = te.reduce_axis((0, 3), name="a"), te.reduce_axis((0, 3), name="b")
    top = te.compute((n, n, channels), lambda i, j, c: te.max(x[2 * i + a, 2 * j + b, c], axis=[a, b]), name="Y")
    return te.create_prim_func([x, top])


def clamped_windows(n, channels):
    """Largest values of windows that repeat the image's edges."""
    x = te.placeholder((channels, n, n), name="X")
    a, b = te.reduce_axis((0, 3), name="a"), te.reduce_axis((0, 3), name="b")
    at = lambda v: te.max(te.min(v - 1, n - 1), 0)  # noqa: E731
    top = te.compute((channels, n, n), lambda c, i, j: te.max(x[c, at(i + a), at(j + b)], axis=[a, b]), name="Y")
    return te.create_prim_func([x, top])


def vector(m, k):
    a, x, r = te.placeholder((m, k), name="A"), te.placeholder((k,), name="x"), te.reduce_axis((0, k), name="k")
    return te.create_prim_func([a, x, te.compute((m,), lambda i: te.sum(a[i, r] * x[r], axis=[r]), name="y")])


def elementwise(*shape, dtype="float32"):
    a, b = te.placeholder(shape, dtype, name="A"), te.placeholder(shape, dtype, name="B")
    half = te.compute(shape, lambda *i: a[i] + b[i], name="half")
    return te.create_prim_func([a, b, te.compute(shape, lambda *i: half[i] * a[i], name="C")])


def turned_copy(m, n):
    a = te.placeholder((m, n), name="A")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: a[j, i], name="B")])


def recurrence(sequences, steps):
    """A linear recurrence in each column."""
    return from_source(f"""@T.prim_func
def recurrence(A: T.Buffer(({steps}, {sequences})), X: T.Buffer(({steps}, {sequences})),
               S: T.Buffer(({steps}, {sequences}))):
    for j, t in T.grid({sequences}, {steps}):
        with T.block("S"):
            vj, vt = T.axis.remap("SS", [j, t])
            S[vt, vj] = T.if_then_else(vt == 0, T.float32(0), S[vt - 1, vj]) * A[vt, vj] + X[vt, vj]
""")


SPARSE_PRODUCT = """@T.prim_func
def spmm(ptr: T.handle, ind: T.handle, val: T.handle, b: T.handle, c: T.handle):
    m, n, z = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
    P = T.match_buffer(ptr, (m + 1,), "{index}")
    I = T.match_buffer(ind, (z,), "{index}")
    A = T.match_buffer(val, (z,), "{dtype}")
    B = T.match_buffer(b, (n, {columns}), "{dtype}")
    C = T.match_buffer(c, (m, {columns}), "{dtype}")
    {declared}
    for i in range(m):
        with T.block("row"):
            vi = T.axis.spatial(m, i)
            for j in range({columns}):
                with T.block("zero"):
                    vj = T.axis.spatial({columns}, j)
                    C[vi, vj] = T.Cast("{dtype}", 0)
            for p, j in T.grid(P[vi + 1] - P[vi], {columns}):
                with T.block("sum"):
                    vp = T.axis.reduce(P[vi + 1] - P[vi], p)
                    vj = T.axis.spatial({columns}, j)
                    C[vi, vj] += A[P[vi] + vp] * B[I[P[vi] + vp], vj]
"""
SORTED_ROWS = (
    'T.assume_buffer_domain(P, [0, z + 1], order="nondecreasing")\n'
    '    T.assume_buffer_domain(I, [0, n], order="increasing", segments=P)'
)


def sparse_product(columns, dtype="float32", index="int32", declared=SORTED_ROWS):
    """C = A @ B for A in CSR, with open sizes but for the columns of B."""
    return from_source(SPARSE_PRODUCT.format(columns=columns, dtype=dtype, index=index, declared=declared))


def sparse_product_of(m, n, z, columns):
    program = sparse_product(columns)
    sizes = {"m": m, "n": n, "z": z}
    extents = [extent for buffer in program.buffer_map.values() for extent in buffer.shape]
    return specialize(program, {e: sizes[e.name_hint] for e in extents if isinstance(e, tw.ir.Var)})


def scattered_product(columns, elements=90):
    """C = A @ B for A in COO: several elements belong to one row."""
    return from_source(f"""@T.prim_func
def scattered(R: T.Buffer(({elements},), "int32"), J: T.Buffer(({elements},), "int32"), A: T.Buffer(({elements},)),
              B: T.Buffer((20, {columns})), C: T.Buffer((37, {columns}))):
    T.assume_buffer_domain(R, [0, 37])
    T.assume_buffer_domain(J, [0, 20])
    for i, j in T.grid(37, {columns}):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for p, j in T.grid({elements}, {columns}):
        with T.block("sum"):
            vp, vj = T.axis.remap("RS", [p, j])
            C[R[vp], vj] += A[vp] * B[J[vp], vj]
""")


def read_twice(function, n, m):
    """Of each element and its row, so that it is inlined only if it is cheaper to compute again."""
    a, k = te.placeholder((n, m), name="A"), te.reduce_axis((0, m), name="k")
    e = te.compute((n, m), lambda i, j: function(a[i, j], a[i, j] * 2.0), name="E")
    s = te.compute((n,), lambda i: te.sum(e[i, k], axis=[k]), name="S")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: e[i, j] - s[i], name="D")])


PROGRAMS = {
    "product": product(24, 40, 20),
    "product with a named outermost block": with_outermost_block("model", product(24, 40, 20)),
    "odd product": product(37, 53, 19),
    "prime, thin": product(3, 61, 7),
    "one row": product(1, 130, 17),
    "one column": product(29, 1, 31),
    "turned": product(26, 33, 12, turned=True),
    "batched": product(9, 34, 16, batch=3),
    "long sum": product(9, 40, 2304),
    "three columns": product(50, 3, 96),
    "two columns of a sum that is cut off": product(33, 2, 61),
    "doubles": product(13, 22, 9, "float64"),
    "halves": product(12, 34, 8, "float16"),
    "integers": product(14, 33, 10, "int32"),
    "bytes": product(14, 70, 10, "int8"),
    "bytes in groups": bytes_product(14, 32, 12),
    "signed bytes in groups": bytes_product(17, 48, 8, "int8", turned=True),
    "bytes that are no groups": bytes_product(9, 24, 10),
    "signed bytes with tails": bytes_product(11, 100, 21, "int8"),
    "bfloat16 in, float32 out": te.create_prim_func(formulas.matmul(13, 48, 16, "bfloat16", "float32")),
    "bfloat16 with tails": te.create_prim_func(formulas.matmul(9, 75, 17, "bfloat16", "float32")),
    "convolution of bytes": bytes_convolution(5, 8, 16),
    "convolution": convolution(8, 5, 18),
    "strided, grouped": convolution(9, 8, 64, stride=2, groups=2),
    "with bias and relu": convolution(6, 4, 33, epilogue=True),
    "no padding": convolution(5, 6, 20, kernel=1, pad=0),
    "three filters": convolution(7, 6, 3),
    "depthwise": depthwise(7, 20),
    "depthwise, padded": te.create_prim_func(formulas.depthwise_conv2d_nhwc(1, 8, 7, 20, 3, 1, 1)),
    "depthwise, padded, strided": te.create_prim_func(formulas.depthwise_conv2d_nhwc(1, 12, 12, 16, 3, 2, 1)),
    "transposed convolution": transposed_convolution(5, 6, 17),
    "transposed, three filters": transposed_convolution(16, 6, 3),
    "transposed, wide tail": transposed_convolution(8, 4, 40),
    "transposed, odd kernel": transposed_convolution(4, 5, 20, kernel=3),
    "transposed, stride 3": transposed_convolution(4, 3, 16, kernel=5, stride=3),
    "transposed, channels first, odd results": transposed_in_channels(6, 5, 17, 3, 2),
    "transposed, channels first, even results": transposed_in_channels(6, 5, 17, 4, 2),
    "transposed, channels first, whole vectors": transposed_in_channels(5, 6, 32, 3, 2),
    "transposed, channels first, three filters": transposed_in_channels(6, 3, 3, 5, 3),
    "three filters, wide": convolution(18, 6, 3),
    "three filters, no padding": convolution(20, 5, 3, kernel=1, pad=0),
    "softmax": softmax(5, 37),
    "norm": norm(13, 29),
    "columns": column_sums(17, 50),
    "many columns": column_sums(5, 700),
    "maximum of windows": windows(5, 20),
    "windows over repeated edges": clamped_windows(37, 2),
    "matrix times vector": vector(23, 45),
    "elementwise": elementwise(7, 33),
    "short rows": elementwise(11, 5, 3),
    "long": elementwise(1000),
    "copy": turned_copy(35, 41),
    "scalar": elementwise(1),
    "recurrence": recurrence(150, 9),
    "next numbers, read twice": read_twice(te.nextafter, 9, 40),
    "sparse rows": sparse_product_of(37, 20, 200, 32),
    "sparse rows in panels": sparse_product_of(9, 50, 300, 640),
    "sparse rows of a large operand": sparse_product_of(9, 6000, 300, 128),
    "short sparse rows of a large operand": sparse_product_of(9, 20000, 300, 32),
    "scattered rows": scattered_product(100, 900),
}


def open_product(n="n", m="m", k="k"):
    """Of sizes that a call says; numbers are numbers."""
    sizes = {size: te.var(size) for size in (n, m, k) if isinstance(size, str)}
    n, m, k = (sizes.get(size, size) for size in (n, m, k))
    a, b, r = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B"), te.reduce_axis((0, k), name="r")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=[r]), name="C")])


OPEN_PROGRAMS = {
    "product": open_product(),
    "product of rows": open_product("n", 40, 24),
    "product of columns": open_product(20, "m", 24),
    "product with an open sum": open_product(20, 40, "k"),
    "softmax": softmax(te.var("n"), te.var("m")),
    "softmax of rows": softmax(te.var("n"), 37),
    "elementwise": elementwise(te.var("n"), te.var("m")),
    "one axis": elementwise(te.var("n")),
    "columns": column_sums(te.var("n"), te.var("m")),
    "copy": turned_copy(te.var("n"), te.var("m")),
    "matrix times vector": vector(te.var("n"), te.var("k")),
}


def scheduled(program, target=TARGETS[0], best=True, seed=0):
    sch = tw.Schedule(program, seed=seed)
    cpu.schedule_for_cpu(sch, tw.Target(target), best=best)
    return sch


def check_results(program, kernels, seed=0, reference="native", tolerance=1e-4):
    """Assert that kernels leave in their arguments what the program without a schedule leaves.

    Args:
        program: without a schedule.
        kernels: of schedules of it; they may be compiled one after the other.
        seed: of the numbers in the arguments.
        reference: what runs the program, this processor or "interpreter".
        tolerance: relative and absolute, of floats; other numbers are equal.
    """
    task = task_of(program)
    expected = list(make_arrays(task, {}, seed).values())
    tw.compile(program, reference, schedule="as written")(*expected)
    for kernel in kernels:
        arrays = list(make_arrays(task, {}, seed).values())
        kernel(*arrays)
        for array, wanted in zip(arrays, expected, strict=True):
            rough = 0 if array.dtype.kind in "iub" else tolerance
            np.testing.assert_allclose(array, wanted, rtol=rough, atol=rough)
