"""Every construct of the dialect: it parses, prints, parses again to the same program, and survives JSON."""

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T

FUNCTION = "@T.prim_func\ndef f(A: T.Buffer((64,), 'float32'), B: T.Buffer((16, 16), 'float32'), n: T.int32):\n"

#: Bodies of functions with the parameters above.
BODIES = {
    "attributes": """
T.func_attr({"i": 1, "s": "text", "b": T.bool(True), "l": [1, 2], "d": {"a": 1}, "f": 0.5})
T.func_ret(T.int32)
T.evaluate(T.ret(n + 1))
""",
    "docstring, pass and ellipsis": """
'''What it does.'''
if n > 3:
    pass
"a bare string"
...
""",
    "buffers of a block": """
C = T.alloc_buffer((4, 4), "int8", scope="local", axis_separators=[1])
D = T.decl_buffer((4, 4), "float32")
E = T.decl_buffer((16,), "float32", data=D.data)
p = T.allocate([16], "float32", "global", annotations={"k": 1})
F = T.Buffer((16,), data=p)
G = T.Buffer((4, 4), "float32", data=p, strides=[4, 1], elem_offset=0)
k = T.allocate_const([1, 2, 3, 4], "int32", [4])
K = T.Buffer((4,), "int32", data=k)
with T.block("b"):
    C[0, 0] = T.int8(1)
D[0, 0] = 1.0
E[1] = 2.0
F[0] = G[0, 1] + T.Cast("float32", K[1])
""",
    "buffers like others": """
C = T.alloc_buffer(A.shape, A.dtype)
D = T.alloc_buffer(B.shape)
with T.block("b"):
    C[0] = D[0, 0]
""",
    "view of a region": """
for i in range(4):
    with T.block("b"):
        vi = T.axis.spatial(4, i)
        T.reads()
        T.writes(B[vi * 4:vi * 4 + 4, 0:16])
        s = T.int32()
        C = T.match_buffer(B[vi * 4:vi * 4 + 4, 0:16], (4, 16), strides=[s, 1], offset_factor=1)
        C[0, 0] = 1.0
""",
    "view of one element": """
for i, j in T.grid(16, 16):
    with T.block("b"):
        vi, vj = T.axis.remap("SS", [i, j])
        T.reads()
        T.writes(B[vi, vj])
        C = T.match_buffer(B[vi, vj], (), offset_factor=1)
        C[()] = 1.0
""",
    "conditional allocation": """
with T.allocate([n], "float32", "global", condition=n > 1) as p:
    P = T.Buffer((n,), data=p)
    P[0] = 1.0
""",
    "realize": """
C = T.Buffer((16,), "float32")
with T.realize(C[0:16], "shared"):
    C[0] = 1.0
D = T.Buffer((16,), "float32")
with T.realize(D[0:8]):
    D[0] = 1.0
E = T.Buffer((16,), "float32")
T.realize(E[0:n], condition=n > 1)
E[0] = 1.0
""",
    "loops": """
for i in T.serial(4, annotations={"k": 1}):
    A[i] = 1.0
for i in T.serial(2, 4):
    A[i] = 1.0
for i in T.parallel(4, annotations={"k": "x"}):
    A[i] = 1.0
for i in T.vectorized(0, 4):
    A[i] = 1.0
for i in T.unroll(4):
    A[i] = 1.0
for i in T.thread_binding(4, thread="blockIdx.x", annotations={"p": 1}):
    A[i] = 1.0
for i in T.thread_binding(0, 4, "threadIdx.x"):
    A[i] = 1.0
for i, j in T.grid(4, n):
    A[i] = 1.0
for i in range(T.int64(5)):
    A[i] = 1.0
""",
    "control flow": """
i = T.decl_buffer((1,), "int32")
i[0] = 0
while i[0] < 10:
    i[0] += 1
if n > 3:
    A[0] = 1.0
elif n > 2:
    A[1] = 1.0
else:
    A[2] = 1.0
assert n > 0, "n must be positive"
T.evaluate(n)
T.attr(A.data, "storage_alignment", 64)
with T.attr(0, "pragma_unroll", "explicit"):
    A[5] = 1.0
with T.attr(A, "key", {"a": 1, "b": ["c"]}):
    A[6] = 1.0
""",
    "threads": """
bx = T.launch_thread("blockIdx.x", 4)
tx = T.env_thread("threadIdx.x")
with T.launch_thread(tx, 16):
    A[bx * 16 + tx] = 1.0
""",
    "threads side by side": """
with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 16) as tx:
    A[bx * 16 + tx] = 1.0
""",
    "let": """
x = n + 1
y: T.int32 = x * 2
with T.LetStmt(n * 2) as z:
    A[z] = 1.0
w = T.int32()
with T.LetStmt(n * 3, var=w):
    A[w] = 2.0
u = T.int32()
with T.let(u, n):
    A[u] = 2.0
q = T.int32()
A[T.Let(q + 1, where={q: n})] = 1.0
r = T.int32()
A[T.let(r, n, r * r)] = 1.0
x += y
A[x] = 1.0
""",
    "print": """
T.print("hello")
T.print("n is", n, A[0], A[0:4], "100%")
T.print()
""",
    "prefetch": """
T.prefetch(A, [T.Range(0, 64)])
T.prefetch(B[n, 0:16])
T.prefetch(B[0:4, n])
""",
    "blocks": """
C = T.alloc_buffer((16,))
for i, j in T.grid(16, 16):
    with T.block("x"):
        vi = T.axis.S(16, i)
        vj = T.axis.R((0, 16), j)
        T.where(i < 8)
        T.reads([B[vi, vj], C[vi]])
        T.writes(C[vi])
        T.block_attr({"k": 1})
        with T.init():
            C[vi] = 0.0
        C[vi] += B[vi, vj]
for i, j in T.grid(16, 16):
    with T.block():
        vi, = T.axis.remap("S", [i])
        vj = T.axis.scan([0, 16], j)
        vk = T.axis.opaque(T.Range(0, 4), 3)
        C[vi] = B[vi, vj] + T.Cast("float32", vk)
for i in range(16):
    with T.block("y"):
        vi = T.axis.remap("S", [i])
        A[vi] = C[vi]
""",
    "regions": """
with T.block("x"):
    T.reads(B[0:16, 0:16], B[:, 0], A)
    T.writes(B[0, 0:4])
    T.evaluate(T.call_extern("int32", "f", B.access_ptr("r"), B.access_ptr("rw", offset=4)))
""",
    "unpacking": """
for *ij, in T.grid(16, 16):
    with T.block("x"):
        v = T.axis.remap("SS", ij)
        B[*v] = 1.0
for index in T.grid(*B.shape):
    with T.block("y"):
        v = T.axis.remap("SS", index)
        B[(*v,)] = A[v[0]]
for i, *rest in T.grid(16, 16):
    with T.block("z"):
        vi, *vr = T.axis.remap("SS", [i, *rest])
        B[vi, *vr] = 1.0
""",
    "integers": """
I = T.decl_buffer((16,), "int32")
I[0] = n + 1 - 2 * n // 3 % 4
I[1] = (n & 3) | (n ^ 1)
I[2] = ~n << 2 >> 1
I[3] = -n
I[4] = T.Select(n > 1 and n < 3 or not n == 5, 1, 2)
I[5] = T.if_then_else(1 < n < 5, 1, 2)
I[6] = 1 if n == 3 else 2
I[7] = T.truncdiv(n, 2) + T.truncmod(n, 2) + T.floordiv(n, 3) + T.floormod(n, 5) + T.ceildiv(n, 2)
I[8] = T.min(n, 3) + T.max(n, 3) + T.abs(n) + T.clz(n) + T.popcount(n)
I[9] = T.shift_left(n, 1) + T.shift_right(n, 2) + T.bitwise_and(n, 1) + T.bitwise_or(n, 1) + T.bitwise_not(n)
I[10] = T.if_then_else(T.likely(n < 3), 1, 2)
I[11] = T.Add(1, 2) + T.Sub(n, 1) + T.Mul(2, n) + T.Div(n, 2) + T.Mod(n, 2) + T.FloorDiv(4, 2) + T.Min(1, 2)
I[12] = T.Select(T.And(T.EQ(n, 1), T.Or(T.NE(n, 2), T.Not(T.LT(n, 3)))), 1, 2) + T.Select(T.LE(n, 1), 1, 2)
I[13] = T.q_multiply_shift(n, n, 31, 2) + T.q_multiply_shift_per_axis(n, n, 1, 2, 31, 1, 0)
I[14] = T.if_then_else(T.isnullptr(A.data), 1, 0)
""",
    "floats": """
A[0] = A[1] / A[2]
A[1] = A[0] ** 2.0
A[2] = T.pow(A[1], 3.0) + T.power(A[1], T.float32(2))
A[3] = T.cast(n, "float32") + T.Cast("float32", n) + n.astype("float32") + T.float32(n)
A[4] = T.reinterpret("float32", n)
A[5] = T.float32("inf") + T.float32("nan") + T.float32("-inf") + T.infinity("float32")
A[6] = T.min_value("float32") + T.max_value("float32")
A[7] = T.abs(A[0]) + T.exp(A[0]) + T.sigmoid(A[0]) + T.rsqrt(A[1]) + T.fmod(A[0], A[1])
A[8] = T.ldexp(A[0], n) + T.copysign(A[0], A[1]) + T.hypot(A[0], A[1]) + T.nextafter(A[0], A[1])
A[9] = T.round(A[0]) + T.trunc(A[0]) + T.nearbyint(A[0]) + T.log1p(A[0]) + T.exp10(A[0]) + T.erf(A[0])
A[10] = T.Select(T.isnan(A[0]) or T.isinf(A[1]) or T.isfinite(A[2]), A[0], A[1])
""",
    "vectors": """
A[0:4] = A[4:8] + A[8:12]
A[0:8:2] = A[T.Ramp(0, 2, 4)]
A[T.ramp(n, 1, 4)] = T.Broadcast(T.float32(1), 4)
C = T.decl_buffer((4,), "float32x4")
C[0] = T.Shuffle([A[0:4], A[4:8]], [0, 2, 4, 6])
A[0] = T.Shuffle([A[0:4]], [2])
A[0:4] = T.vectorlow("float32x4", A[0:8])
A[0:4] = T.vectorhigh("float32x4", A[0:8])
A[0:8] = T.vectorcombine("float32x8", A[0:4], A[4:8])
mask = T.meta_var(T.Broadcast(T.bool(True), 4))
A.vstore([T.Ramp(0, 1, 4)], A.vload([T.Ramp(0, 1, 4)], predicate=mask), predicate=mask)
T.buffer_store(A, 1.0, [0])
T.buffer_store(A, T.Broadcast(T.float32(1), 4), [T.Ramp(0, 1, 4)], mask)
A[0] = T.BufferLoad(A, [1])
""",
    "scalable vectors": """
for i in range(T.ceildiv(n, 4 * T.vscale())):
    A[T.Ramp(i * 4 * T.vscale(), 1, 4 * T.vscale())] = T.Broadcast(T.float32(1), 4 * T.vscale())
    mask = T.meta_var(T.get_active_lane_mask("uint1xvscalex4", i, n))
    A.vstore([T.Ramp(0, 1, 4 * T.vscale())], A.vload([T.Ramp(0, 1, 4 * T.vscale())], predicate=mask), predicate=mask)
""",
    "calls": """
T.call_extern("f", n, dtype="int32")
T.call_extern("int32", "f", n)
T.call_pure_extern("float32", "f", n)
T.call_packed("f", n, A.data, "s")
T.call_intrin("float32", "tir.exp", A[0])
T.call_llvm_pure_intrin("float32", "llvm.fma.f32", T.uint32(3), A[0], A[1], A[2])
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 64, 1))
T.evaluate(T.address_of(A[0]))
T.evaluate(T.tvm_stack_alloca("shape", 2))
T.evaluate(T.tvm_storage_sync("shared"))
T.assume(n > 0)
T.evaluate(T.undef())
T.evaluate(T.tvm_warp_shuffle(T.uint32(1), n, 0, 32, 32))
T.evaluate(T.ptx_wait_group(0))
T.evaluate(T.mma_fill(8, A.data, 0, dtype="float32"))
T.evaluate(T.ptx_ldmatrix(True, 4, ".b16", A.data, 0, A.data, 0, dtype="float16"))
T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[0], True, A.data, n))
""",
    "values of Python": """
x = T.meta_var(n + 1)
A[x] = 1.0
y, z = T.meta_var((1, 2))
A[y] = z
for k in [1, 2, 3]:
    A[k] = T.float32(k)
for a, b in zip([1, 2], [3, 4]):
    A[a] = T.float32(b)
several = T.meta_var([n + i for i in range(3)])
A[several[0]] = sum(T.float32(i) for i in range(3))
""",
    "functions of Python": """
def next_of(i):
    return A[i] + 1.0
A[0] = next_of(n)
twice = lambda i: A[i] * 2.0
A[1] = twice(n)
""",
}

#: Whole programs.
PROGRAMS = {
    "private": "@T.prim_func(private=True)\ndef f(a: T.int32) -> T.int32:\n    return a + 1\n",
    "parameters": """
@T.prim_func
def f(a: T.handle, b: T.handle("float32", "shared"), n: T.int32, m: T.int64, c: T.bool):
    k = T.int32()
    s0, s1 = T.int32(), T.int32()
    A = T.match_buffer(a, (k, n), "float16", strides=[s0, s1], offset_factor=4, align=16)
    B = T.match_buffer(b, (k, n), "float32", scope="shared", elem_offset=8)
    for i in range(n):
        A[0, i] = T.float16(1)
        B[0, i] = T.Cast("float32", m)
""",
    "sizes by name": """
@T.prim_func
def f(a: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", strides=["s0", "s1"], elem_offset=T.int32(), offset_factor=1)
    A[0, 0] = T.float16(1)
""",
    "types": """
@T.prim_func
def f(
    a: T.Buffer((4,), "int4"), b: T.Buffer((4,), "uint4"), c: T.Buffer((4,), "bfloat16"),
    d: T.Buffer((4,), "float8_e4m3fn"), e: T.Buffer((4,), "float8_e5m2"), g: T.Buffer((4,), "float4_e2m1fn"),
    h: T.Buffer((4,), "bool"), i: T.Buffer((4,), "uint1"), j: T.Buffer((4,), "int2"), k: T.Buffer((4,), "float16x4"),
):
    a[0] = T.int4(1)
    b[0] = T.uint4(1)
    c[0] = T.bfloat16(1)
    d[0] = T.float8_e4m3fn(1.5)
    e[0] = T.float8_e5m2(1.5)
    g[0] = T.float4_e2m1fn(1.5)
    h[0] = True
    h[1] = T.bool(False)
    i[0] = T.uint1(1)
    j[0] = T.int2(-1)
    k[0] = T.float16x4(1)
    c[0] = T.Cast("bfloat16", d[1]) + T.Cast("bfloat16", a[1])
""",
    "module": """
@I.ir_module
class M:
    I.module_attrs({"a": 1})
    I.module_set_attr("b", "text")
    I.module_global_infos({"mesh": [I.dummy_global_info(), {"kind": "other"}]})

    @T.prim_func
    def g(A: T.Buffer((4,), "float32")):
        A[0] = 1.0

    @T.prim_func(private=True)
    def h(x: T.int32) -> T.int32:
        return x

    @T.prim_func
    def k(A: T.Buffer((4,), "float32"), n: T.int32):
        M.g(A.data)
        cls.g(A.data)
        A[cls.h(n)] = T.Cast("float32", I.module_get_attr("a"))
""",
    "macros": """
@T.macro
def hygienic(A, i, v=1.0):
    A[i] = v

@T.macro(hygienic=False)
def open(A):
    A[j] = 2.0

@T.prim_func
def f(A: T.Buffer((4,), "float32"), n: T.int32):
    hygienic(A, 1)
    hygienic(A, 2, v=T.float32(3))
    for j in range(4):
        open(A)
""",
}


def check(text: str) -> None:
    program = tw.script.from_source(text)
    printed = program.script(show_meta=True)
    again = tw.script.from_source(printed)
    ir.assert_structural_equal(again, program, True)
    assert again.script(show_meta=True) == printed
    ir.assert_structural_equal(ir.load_json(ir.save_json(program)), program, True)
    plain = program.script(show_meta=True, syntax_sugar=False)
    ir.assert_structural_equal(tw.script.from_source(plain), program, True)


def function(body: str) -> str:
    return FUNCTION + "".join(f"    {line}\n" for line in body.strip().splitlines())


@pytest.mark.parametrize("name", BODIES)
def test_body(name: str) -> None:
    check(function(BODIES[name]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    check(PROGRAMS[name])


def test_a_second_name_of_a_variable_is_a_variable() -> None:
    program = tw.script.from_source(
        "@T.prim_func\n"
        'def f(A: T.Buffer((8,), "float32"), n: T.int32):\n'
        "    x: T.float32 = A[0]\n"
        "    y = x\n"
        "    m = n\n"
        "    p: T.handle('float32') = T.address_of(A[m])\n"
        "    T.evaluate(p)\n"
        "    A[1] = y\n"
    )
    text = program.script()
    assert "    y: T.float32 = x\n" in text
    assert "    m: T.int32 = n\n" in text
    assert '    p: T.handle("float32", "global") = T.address_of(A[m])\n' in text
    assert ir.structural_equal(tw.script.from_source(text), program)


def test_regions_that_are_given_in_part_are_completed():
    """One of reads and writes is found where only the other is given; access_ptr() says what is behind pointers."""

    @T.prim_func
    def part(A: T.Buffer((8, 4)), B: T.Buffer((8, 4)), C: T.Buffer((8,))):
        for i, j in T.grid(8, 4):
            with T.block("reads"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, 0:4])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, k in T.grid(8, 4):
            with T.block("writes"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.writes(C[vi])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vk]
        with T.block("pointers"):
            T.reads(A[0:2, 0:4])
            T.evaluate(T.call_extern("int32", "f", A.access_ptr("r"), B.access_ptr("w"), C.access_ptr("rw")))
        with T.block("none"):
            T.evaluate(T.call_extern("int32", "f", A.access_ptr("r"), B.access_ptr("w"), C.access_ptr("rw")))

    text = [line.strip() for line in part.script().splitlines()]
    regions = [line for line in text if line.startswith(("T.reads", "T.writes"))]
    assert regions == [
        "T.reads(A[vi, 0:4])",
        "T.writes(B[vi, vj])",
        "T.reads(B[vi, vk])",
        "T.writes(C[vi])",
        "T.reads(A[0:2, 0:4])",
        "T.writes(B[0:8, 0:4], C[0:8])",
        "T.reads(A[0:8, 0:4], C[0:8])",
        "T.writes(B[0:8, 0:4], C[0:8])",
    ]
