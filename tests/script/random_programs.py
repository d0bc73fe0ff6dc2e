"""Random programs over all kinds of nodes: well formed, and meant to be printed and parsed, not to be run."""

from __future__ import annotations

import random
from collections.abc import Callable

from tilewright import ir

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
ARITHMETIC = [ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod, ir.Div, ir.Min, ir.Max]
COMPARISONS = [ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE]
UNARY = ["exp", "sqrt", "tanh", "floor", "round", "sigmoid", "fabs"]
KINDS = [ir.ForKind.SERIAL, ir.ForKind.PARALLEL, ir.ForKind.VECTORIZED, ir.ForKind.UNROLLED]
TAGS = ["blockIdx.x", "threadIdx.x", "vthread.x"]


class Generator:
    """Draws expressions and statements; `variables` and `buffers` are what is in scope."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[ir.Var] = []
        self.buffers: list[ir.Buffer] = []
        self.names = 0

    def name(self, base: str) -> str:
        # Names collide, are keywords, or are no identifiers: the printer has to cope.
        return self.random.choice([base, base, "x", "lambda", "i_1", "T", "a.b", "α", ""])

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- expressions

    def constant(self, dtype: str) -> ir.Expr:
        if dtype == "bool":
            return ir.IntImm("bool", self.random.randint(0, 1))
        if dtype in INTS:
            bits = int(dtype.removeprefix("u").removeprefix("int"))
            low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            value = self.random.choice([0, 1, 2, 7, low, high, self.random.randint(low, high)])
            # Fields hold signed 64-bit numbers: of a large uint64 its bits.
            return ir.IntImm(dtype, value)
        value = self.random.choice([0.0, -0.0, 1.0, 0.1, 1e-7, 448.0, float("inf"), float("-inf"), float("nan")])
        return ir.FloatImm(dtype, value)

    def scalar(self, dtype: str, depth: int) -> ir.Expr:
        matching = [v for v in self.variables if v.dtype == dtype]
        if depth <= 0 or self.chance(0.1):
            return self.random.choice(matching) if matching and self.chance(0.7) else self.constant(dtype)
        if dtype == "bool":
            return self.condition(depth)
        draw = self.random.randint(0, 9)
        if draw <= 3:
            operator = self.random.choice(ARITHMETIC + ([ir.Mod] if dtype in INTS else []))
            return operator(self.scalar(dtype, depth - 1), self.scalar(dtype, depth - 1))
        if draw == 4:
            return ir.Select(
                self.scalar("bool", depth - 1), self.scalar(dtype, depth - 1), self.scalar(dtype, depth - 1)
            )
        if draw == 5:
            return ir.Cast(dtype, self.scalar(self.random.choice(INTS + FLOATS + ["bool"]), depth - 1))
        if draw == 6:
            return self.call(dtype, depth)
        if draw == 7:
            variable = ir.Var(self.name("let"), self.random.choice(INTS))
            value = self.scalar(variable.dtype, depth - 1)
            body = self.within([variable], lambda: self.scalar(dtype, depth - 1))
            return ir.Let(variable, value, body)
        loads = [b for b in self.buffers if b.dtype == dtype]
        if not loads:
            return self.scalar(dtype, depth - 1)
        buffer = self.random.choice(loads)
        return ir.BufferLoad(buffer, [self.scalar("int32", depth - 2) for _ in buffer.shape], None)

    def condition(self, depth: int) -> ir.Expr:
        draw = self.random.randint(0, 4)
        if draw <= 1:
            dtype = self.random.choice(INTS + FLOATS + ["bool"])
            return self.random.choice(COMPARISONS)(self.scalar(dtype, depth - 1), self.scalar(dtype, depth - 1))
        if draw == 2:
            return ir.Not(self.scalar("bool", depth - 1))
        return self.random.choice([ir.And, ir.Or])(self.scalar("bool", depth - 1), self.scalar("bool", depth - 1))

    def call(self, dtype: str, depth: int) -> ir.Expr:
        def op(name: str, *args: ir.Node) -> ir.Expr:
            return ir.Call(dtype, ir.Op(f"tir.{name}"), list(args))

        def arg() -> ir.Expr:
            return self.scalar(dtype, depth - 1)

        draw = self.random.randint(0, 4)
        if draw == 0:
            return op("if_then_else", self.scalar("bool", depth - 1), arg(), arg())
        if draw == 1:
            return op(
                "call_extern", ir.StringImm(self.random.choice(["f", 'q"\\\t', "é"])), arg(), self.scalar("int32", 0)
            )
        if draw == 2:
            return op("likely", arg())
        if dtype in FLOATS:
            return op(self.random.choice(UNARY), arg()) if draw == 3 else op("pow", arg(), arg())
        name = self.random.choice(["shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"])
        return op("bitwise_not", arg()) if draw == 3 else op(name, arg(), arg())

    def vector(self, dtype: str, lanes: int, depth: int) -> ir.Expr:
        draw = self.random.randint(0, 5)
        if draw == 0 and dtype in INTS:
            return ir.Ramp(self.scalar(dtype, depth - 1), self.scalar(dtype, depth - 1), lanes)
        if draw == 1 and depth > 0:
            return self.random.choice(ARITHMETIC)(
                self.vector(dtype, lanes, depth - 1), self.vector(dtype, lanes, depth - 1)
            )
        if draw == 2 and depth > 0:
            halves = [self.vector(dtype, lanes, depth - 1) for _ in range(2)]
            return ir.Shuffle(halves, [self.random.randrange(2 * lanes) for _ in range(lanes)])
        loads = [b for b in self.buffers if b.dtype == dtype and len(b.shape)]
        if draw in (3, 4) and loads:
            buffer = self.random.choice(loads)
            return ir.BufferLoad(buffer, self.vector_index(buffer, lanes), self.mask(lanes))
        return ir.Broadcast(self.scalar(dtype, depth - 1), lanes)

    def vector_index(self, buffer: ir.Buffer, lanes: int) -> list[ir.Expr]:
        stride = self.random.choice([1, 1, 2, -1])
        return [self.scalar("int32", 1) for _ in buffer.shape[1:]] + [ir.Ramp(self.scalar("int32", 1), stride, lanes)]

    def mask(self, lanes: int) -> ir.Expr | None:
        return ir.Broadcast(self.scalar("bool", 1), lanes) if self.chance(0.3) else None

    # ---- statements

    def within(self, variables: list[ir.Var], draw: Callable[[], ir.Node]) -> ir.Node:
        kept, buffers = len(self.variables), len(self.buffers)
        self.variables += variables
        result = draw()
        del self.variables[kept:], self.buffers[buffers:]
        return result

    def annotations(self) -> dict[str, object]:
        values = [1, 2**40, 0.5, True, "text", "two\nlines", [1, ["x"]], {"k": 2}, self.constant("uint8")]
        return {f"key{i}": self.random.choice(values) for i in range(self.random.randint(0, 2))}

    def store(self) -> ir.Stmt:
        buffer = self.random.choice(self.buffers)
        if len(buffer.shape) and self.chance(0.25):
            value = self.vector(buffer.dtype, 4, 2)
            return ir.BufferStore(buffer, value, self.vector_index(buffer, 4), self.mask(4))
        return ir.BufferStore(
            buffer, self.scalar(buffer.dtype, 3), [self.scalar("int32", 2) for _ in buffer.shape], None
        )

    def loop(self, depth: int) -> ir.Stmt:
        dtype = self.random.choice(["int32", "int32", "int64"])
        variable = ir.Var(self.name("i"), dtype)
        start = self.constant_index(dtype, 0) if self.chance(0.7) else self.scalar(dtype, 1)
        extent = self.constant_index(dtype, 8) if self.chance(0.7) else self.scalar(dtype, 1)
        kind, thread = self.random.choice(KINDS), None
        annotations = self.annotations() if self.chance(0.2) else {}
        if self.chance(0.1):
            tag = self.random.choice(TAGS)
            kind, thread = (
                ir.ForKind.THREAD_BINDING,
                ir.IterVar(None, ir.Var(tag, dtype), ir.IterType.THREAD_INDEX, tag),
            )
        body = self.within([variable], lambda: self.body(depth - 1))
        return ir.For(variable, start, extent, kind, thread, annotations, body)

    def constant_index(self, dtype: str, value: int) -> ir.Expr:
        return ir.IntImm(dtype, value)

    def buffer(self, dtype: str, scope: str = "global") -> ir.Buffer:
        shape = [self.random.choice([1, 8, 16]) for _ in range(self.random.randint(0, 3))]
        plain = ir.decl_buffer(shape, dtype, self.name("A"), scope)
        if self.chance(0.7):
            return plain
        fields = {name: getattr(plain, name) for name in plain.__match_args__}
        fields["data_alignment"] = self.random.choice([64, 128])
        fields["offset_factor"] = self.random.choice([1, 4])
        if shape and self.chance(0.5):
            fields["strides"] = [self.scalar("int32", 1) for _ in shape]
            fields["axis_separators"] = [1] if len(shape) > 1 else []
        return ir.Buffer(**fields)

    def region(self, buffer: ir.Buffer) -> ir.BufferRegion:
        ranges = [
            ir.Range(self.scalar("int32", 1), self.random.choice([1, 4, self.scalar("int32", 1)])) for _ in buffer.shape
        ]
        return ir.BufferRegion(buffer, ranges)

    def block(self, depth: int) -> ir.Stmt:
        axes, values = [], []
        for _ in range(self.random.randint(0, 3)):
            dtype = self.random.choice(["int32", "int32", "int64"])
            kind = self.random.choice(
                [ir.IterType.DATA_PAR, ir.IterType.COMM_REDUCE, ir.IterType.ORDERED, ir.IterType.OPAQUE]
            )
            start = self.constant_index(dtype, self.random.choice([0, 0, 2]))
            domain = ir.Range(start, self.constant_index(dtype, 8))
            axes.append(ir.IterVar(domain, ir.Var(self.name("v"), dtype), kind, ""))
            values.append(self.scalar(dtype, 1))
        predicate = self.scalar("bool", 2) if self.chance(0.3) else ir.IntImm("bool", 1)

        def inside() -> ir.Stmt:
            allocated = [
                self.buffer(self.random.choice(INTS + FLOATS), self.random.choice(["global", "local"]))
                for _ in range(self.random.randint(0, 1))
            ]
            outer = list(self.buffers)
            reads, writes = ([self.region(b) for b in self.random.sample(outer, min(2, len(outer)))] for _ in range(2))
            self.buffers += allocated
            # An init runs before the reduction, and knows nothing of its axes.
            reduced = [axis.var for axis in axes if axis.iter_type == ir.IterType.COMM_REDUCE]
            variables = list(self.variables)
            self.variables = [v for v in variables if not any(v.same_as(axis) for axis in reduced)]
            init = self.store() if self.chance(0.3) else None
            self.variables = variables
            return ir.Block(
                axes, allocated, [], reads, writes, self.name("B"), self.annotations(), init, self.body(depth - 1)
            )

        return ir.BlockRealize(values, predicate, self.within([axis.var for axis in axes], inside))

    def allocate(self, depth: int) -> ir.Stmt:
        buffer = self.buffer(self.random.choice(INTS + FLOATS))

        def inside() -> ir.Stmt:
            self.buffers.append(buffer)
            return self.body(depth - 1)

        body = self.within([], inside)
        declared = ir.DeclBuffer(buffer, body)
        condition = ir.IntImm("bool", 1) if self.chance(0.8) else self.scalar("bool", 1)
        extents = list(buffer.shape) if self.chance(0.7) else [64]
        return ir.Allocate(
            buffer.data, buffer.dtype, extents, condition, declared, self.annotations() if self.chance(0.2) else {}
        )

    def matched(self) -> ir.MatchBufferRegion:
        source = self.random.choice(self.buffers)
        region = self.region(source)
        plain = ir.decl_buffer([r.extent for r in region.region], source.dtype, self.name("M"))
        fields = {name: getattr(plain, name) for name in plain.__match_args__}
        if self.chance(0.5):
            fields["strides"] = [ir.Var(self.name("s"), "int32") for _ in plain.shape]
        if self.chance(0.5):
            fields["elem_offset"] = ir.Var("off", "int32")
            fields["offset_factor"] = self.random.choice([1, 8])
        return ir.MatchBufferRegion(ir.Buffer(**fields), region)

    def constants(self, depth: int) -> ir.Stmt:
        dtype = self.random.choice(["int8", "int32", "float32"])
        data = ir.TensorData(dtype, [3], b"\x01\x02\x03" if dtype == "int8" else b"\x01\x02\x03\xff" * 3)
        pointer = ir.decl_buffer([3], dtype, self.name("K")).data
        return ir.AllocateConst(pointer, data, dtype, [3], self.body(depth - 1), {})

    def launch(self, depth: int) -> ir.Stmt:
        variable = ir.Var(self.name("tx"), "int32")
        domain = self.random.choice([None, ir.Range(0, 16)])
        axis = ir.IterVar(domain, variable, ir.IterType.THREAD_INDEX, self.random.choice(["threadIdx.x", "vthread"]))
        key = "virtual_thread" if axis.thread_tag == "vthread" else "thread_extent"
        return ir.AttrStmt(axis, key, 16, self.within([variable], lambda: self.body(depth - 1)))

    def alias(self, depth: int) -> ir.Stmt:
        source = self.random.choice(self.buffers)
        fields = {name: getattr(source, name) for name in source.__match_args__}
        view = ir.Buffer(**fields | {"shape": [4, 4], "strides": [], "name": self.name("V"), "axis_separators": []})

        def inside() -> ir.Stmt:
            self.buffers.append(view)
            return self.body(depth - 1)

        body = self.within([], inside)
        return ir.DeclBuffer(view, body) if self.chance(0.5) else body

    def effect(self) -> ir.Stmt:
        call = ir.Call("int32", ir.Op("tir.tvm_storage_sync"), [ir.StringImm("shared")])
        return ir.Evaluate(self.random.choice([call, self.scalar("int32", 2), self.call("float32", 2)]))

    def stmt(self, depth: int) -> ir.Stmt:
        draw = self.random.randint(0, 18)
        if draw >= 14 and depth > 0:
            others = [self.constants, self.launch, self.alias, self.alias]
            return self.effect() if draw == 18 else others[draw - 14](depth)
        if depth <= 0 or draw <= 2:
            return self.store()
        if draw <= 5:
            return self.loop(depth)
        if draw <= 7:
            return self.block(depth)
        if draw == 8:
            return ir.IfThenElse(
                self.scalar("bool", 2), self.body(depth - 1), self.body(depth - 1) if self.chance(0.5) else None
            )
        if draw == 9:
            return ir.While(self.scalar("bool", 2), self.body(depth - 1))
        if draw == 10:
            variable = ir.Var(self.name("x"), self.random.choice(INTS + FLOATS))
            value = self.scalar(variable.dtype, 2)
            return ir.LetStmt(variable, value, self.within([variable], lambda: self.body(depth - 1)))
        if draw == 11:
            node = self.random.choice([ir.StringImm("x"), self.scalar("int32", 1)])
            return ir.AttrStmt(node, "pragma_key", self.scalar("int32", 1), self.body(depth - 1))
        if draw == 12:
            return ir.AssertStmt(self.scalar("bool", 2), ir.StringImm('mes"sage'), self.body(depth - 1))
        return self.allocate(depth)

    def body(self, depth: int) -> ir.Stmt:
        stmts = [self.stmt(depth) for _ in range(self.random.choice([1, 1, 2, 3]))]
        return stmts[0] if len(stmts) == 1 else ir.SeqStmt(stmts)


def program(seed: int, depth: int = 4) -> ir.PrimFunc:
    """A function of two or three buffer and one or two scalar parameters."""
    g = Generator(seed)
    params, buffers = [], {}
    sizes = [ir.Var(g.name("n"), "int32") for _ in range(2)]
    for _ in range(g.random.randint(2, 3)):
        buffer = g.buffer(g.random.choice(INTS + FLOATS))
        if g.chance(0.3):
            buffer = ir.decl_buffer([g.random.choice([*sizes, 8]), g.random.choice(sizes)], buffer.dtype, g.name("A"))
            g.variables += [v for v in buffer.shape if isinstance(v, ir.Var)]
        handle = ir.Var(g.name("p"), "handle")
        params.append(handle)
        buffers[handle] = buffer
        g.buffers.append(buffer)
    for _ in range(g.random.randint(1, 2)):
        scalar = ir.Var(g.name("n"), g.random.choice(["int32", "float32", "int64"]))
        params.append(scalar)
        g.variables.append(scalar)
    attrs: dict[str, object] = {"global_symbol": "main"} if g.chance(0.8) else {}
    if g.chance(0.3):
        attrs["tir.noalias"] = True
    body = g.within([], lambda: g.body(depth))
    root = ir.Block([], [], [], [], [], "root", {}, None, body)
    return ir.PrimFunc(params, buffers, ir.TupleType([]), attrs, ir.BlockRealize([], True, root))
