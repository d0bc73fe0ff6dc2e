#include "script/printer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "script/diff_text.h"
#include "script/interval.h"
#include "script/printer_names.h"
#include "script/printer_text.h"

namespace tilewright::script {
namespace {

const DataType f32 = DataType::float_(32), f16 = DataType::float_(16);
const std::string kHeader = "# from tilewright.script import tir as T\n\n";

std::string verbose(const NodeRef& node) { return print(node, {.verbose_expr = true}); }
Stmt evaluate(int value) { return make<Evaluate>({i32(value)}); }

Ref<IterVar> axis(const std::string& name, int extent, IterType type = IterType::kDataPar) {
  return make<IterVar>({range_of(i32(extent)), var(name), type, ""});
}
Ref<BufferRegion> point(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
  std::vector<Ref<Range>> region;
  for (const Expr& index : indices) region.push_back(range(index, one(index.dtype())));
  return make<BufferRegion>({buffer, region});
}
Stmt realize(std::vector<Expr> values, Block block, Expr predicate = bool_imm(true)) {
  return make<BlockRealize>({std::move(values), std::move(predicate), make(std::move(block))});
}
Ref<PrimFunc> function(std::vector<Ref<Buffer>> buffers, Stmt body, const std::string& symbol = "main") {
  PrimFunc func;
  for (const Ref<Buffer>& buffer : buffers) {
    Ref<Var> handle = var(buffer->name + "_handle", DataType::handle());
    func.params.emplace_back(handle);
    func.buffer_map.emplace_back(handle, buffer);
  }
  func.ret_type = make<TupleType>({});
  if (!symbol.empty()) func.attrs.set("global_symbol", string_imm(symbol));
  func.body = std::move(body);
  return make(std::move(func));
}

Ref<PrimFunc> matmul(int n) {
  Ref<Buffer> a = decl_buffer({i32(n), i32(n)}, f32, "A"), b = decl_buffer({i32(n), i32(n)}, f32, "B"),
              c = decl_buffer({i32(n), i32(n)}, f32, "C");
  Ref<Var> i = var("i"), j = var("j"), k = var("k");
  Ref<IterVar> vi = axis("vi", n), vj = axis("vj", n), vk = axis("vk", n, IterType::kCommReduce);
  Expr x = vi->var, y = vj->var, z = vk->var;
  Block block;
  block.iter_vars = {vi, vj, vk};
  block.reads = {point(a, {x, z}), point(b, {z, y})};
  block.writes = {point(c, {x, y})};
  block.name_hint = "C";
  block.init = store(c, float_imm(f32, 0), {x, y});
  block.body = store(c, load(c, {x, y}) + load(a, {x, z}) * load(b, {z, y}), {x, y});
  Stmt body = loop(i, i32(n), loop(j, i32(n), loop(k, i32(n), realize({i, j, k}, block))));
  Block root;
  root.name_hint = "root";
  root.body = body;
  return function({a, b, c}, realize({}, root));
}

TEST(Printer, Matmul) {
  EXPECT_EQ(print(matmul(128)), kHeader + R"(@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    # with T.block("root"):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj])");
}

TEST(Printer, WithoutSugar) {
  EXPECT_EQ(print(matmul(4), {.tir_prefix = "tir", .indent_spaces = 2, .syntax_sugar = false}),
            R"(# from tilewright.script import tir as tir

@tir.prim_func
def main(A_handle: tir.handle, B_handle: tir.handle, C_handle: tir.handle):
  A = tir.match_buffer(A_handle, (4, 4))
  B = tir.match_buffer(B_handle, (4, 4))
  C = tir.match_buffer(C_handle, (4, 4))
  with tir.block("root"):
    tir.reads()
    tir.writes()
    for i in range(4):
      for j in range(4):
        for k in range(4):
          with tir.block("C"):
            vi = tir.axis.spatial(4, i)
            vj = tir.axis.spatial(4, j)
            vk = tir.axis.reduce(4, k)
            tir.reads(A[vi, vk], B[vk, vj])
            tir.writes(C[vi, vj])
            with tir.init():
              C[vi, vj] = tir.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj])");
}

TEST(Printer, ModulesAndPrivateFunctions) {
  Ref<GlobalVar> callee = make<GlobalVar>({"inner"});
  Module module;
  module.attrs.set("key", i32(1));
  module.functions = {
      {"outer", function({}, make<Evaluate>({make<Call>({DataType::void_(), callee, {i32(3)}})}), "outer")},
      {"inner", function({}, evaluate(0), "")}};
  EXPECT_EQ(print(make<Module>(module)), R"(# from tilewright.script import ir as I
# from tilewright.script import tir as T

@I.ir_module
class Module:
    I.module_attrs({"key": 1})
    @T.prim_func(private=True)
    def inner():
        T.evaluate(0)

    @T.prim_func
    def outer():
        cls.inner(3))");
  EXPECT_EQ(print(make<Module>({})).substr(82), "@I.ir_module\nclass Module:\n    pass");
}

TEST(Printer, HandlesThatAreUsedKeepTheirParameter) {
  Ref<Buffer> a = decl_buffer({i32(8)}, f32, "A"), b = decl_buffer({i32(8)}, f32, "B");
  Ref<PrimFunc> func = function({a, b}, evaluate(0));
  PrimFunc used = *func;
  used.body = make<Evaluate>({used.params[0]});
  used.attrs.set("tir.noalias", bool_imm(true));
  EXPECT_EQ(print(make<PrimFunc>(used)), kHeader + R"(@T.prim_func
def main(A_handle: T.handle, B: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    A = T.match_buffer(A_handle, (8,))
    T.evaluate(A_handle))");
  Buffer alias = *b;
  alias.data = a->data;
  EXPECT_EQ(print(function({a, make<Buffer>(alias)}, evaluate(0))), kHeader + R"(@T.prim_func
def main(A_handle: T.handle, B_handle: T.handle):
    A = T.match_buffer(A_handle, (8,))
    B = T.match_buffer(B_handle, (8,), data=A.data)
    T.evaluate(0))");
}

TEST(Printer, SymbolicShapesStridesAndOffsets) {
  Ref<Var> n = var("n"), s = var("s"), offset = var("A_elem_offset");
  Buffer a{pointer_var("A", f16, "shared"), f16, {n, Expr(n) + 1}, {1}, {s, i32(1)}, offset, "A", 128, 8,
           BufferKind::kAutoBroadcast};
  Ref<Buffer> buffer = make<Buffer>(a);
  Stmt body = make<Evaluate>({make<Add>({make<Mul>({s, n}), offset})});
  EXPECT_EQ(print(function({buffer}, body)), kHeader + R"(@T.prim_func
def main(A_handle: T.handle):
    n = T.int32()
    A = T.match_buffer(A_handle, (n, n + 1), "float16", strides=("s", 1), scope="shared", align=128, offset_factor=8, buffer_type="auto", axis_separators=[1])
    T.evaluate(A.strides[0] * n + A.elem_offset))");
}

TEST(Printer, FreeVariablesAreDeclared) {
  Ref<Var> i = var("i"), p = pointer_var("p", f32);
  EXPECT_EQ(verbose(i), "i = T.int32()\ni");
  EXPECT_EQ(print(i), "i");
  EXPECT_EQ(verbose(size_var("a", f32)), "a = T.float32(is_size_var=True)\na");
  EXPECT_EQ(verbose(p), "p = T.handle(\"float32\", \"global\")\np");
  Ref<Buffer> a = decl_buffer({i32(128), i32(128)}, f16, "A");
  EXPECT_EQ(verbose(a), "A = T.Buffer((128, 128), \"float16\")\nA");
  EXPECT_EQ(print(store(a, load(a, {i, i32(0)}) + float_imm(f16, 1), {i, i32(1)})),
            "A = T.Buffer((128, 128), \"float16\")\ni = T.int32()\nA[i, 1] = A[i, 0] + T.float16(1.0)");
  // Outside of its scope a variable is another declaration, under a name of its own.
  Stmt inside = loop(i, i32(4), make<Evaluate>({i}));
  EXPECT_EQ(print(make<SeqStmt>({{inside, make<Evaluate>({i})}})),
            "i_1 = T.int32()\nfor i in range(4):\n    T.evaluate(i)\nT.evaluate(i_1)");
}

TEST(Printer, BuffersOnAllocatedMemoryAreDeclaredInside) {
  Ref<Var> data = pointer_var("data", f32);
  Buffer view{data, f32, {i32(16)}, {}, {}, i32(0), "view"};
  Ref<Buffer> a = make<Buffer>(view);
  Stmt body = make<Allocate>({data, f32, {i32(16)}, bool_imm(true), store(a, float_imm(f32, 1), {i32(3)}), {}});
  EXPECT_EQ(print(function({}, body)), kHeader + R"(@T.prim_func
def main():
    data = T.allocate([16], "float32", "global")
    view = T.Buffer((16,), data=data)
    view[3] = T.float32(1.0))");
}

TEST(Printer, Loops) {
  Ref<Var> i = var("i"), j = var("j");
  Stmt body = evaluate(0);
  auto first_line = [](const Stmt& s) {
    std::string text = print(s);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line(loop(i, i32(4), loop(j, i, body))), "for i in range(4):");
  EXPECT_EQ(first_line(make<For>({i, i32(2), i32(4), ForKind::kSerial, {}, {}, body})), "for i in range(2, 6):");
  EXPECT_EQ(first_line(loop(i, i32(4), body, ForKind::kParallel)), "for i in T.parallel(4):");
  EXPECT_EQ(first_line(loop(i, i32(4), body, ForKind::kVectorized)), "for i in T.vectorized(4):");
  EXPECT_EQ(first_line(loop(i, i32(4), body, ForKind::kUnrolled)), "for i in T.unroll(4):");
  Annotations notes{{"pragma", i32(1)}, {"list", make<List>({{i32(1), string_imm("x")}})}};
  EXPECT_EQ(first_line(make<For>({i, i32(0), i32(4), ForKind::kSerial, {}, notes, body})),
            "for i in T.serial(4, annotations={\"list\": [1, \"x\"], \"pragma\": 1}):");
  Ref<IterVar> thread = make<IterVar>({{}, var("threadIdx.x"), IterType::kThreadIndex, "threadIdx.x"});
  EXPECT_EQ(first_line(make<For>({i, i32(0), i32(4), ForKind::kThreadBinding, thread, {}, body})),
            "for i in T.thread_binding(4, thread=\"threadIdx.x\"):");
  Ref<Var> wide = var("k", DataType::int_(64));
  EXPECT_EQ(first_line(loop(wide, i64(4), body)), "for k in range(T.int64(4)):");
}

TEST(Printer, BlocksInFull) {
  Ref<Buffer> a = decl_buffer({i32(16), i32(16)}, f32, "A");
  Ref<Buffer> local = decl_buffer({i32(16)}, f32, "A_local", "local");
  Ref<Buffer> sub = decl_buffer({i32(4), i32(4)}, f32, "sub");
  Ref<Var> i = var("i");
  Ref<IterVar> v0 = axis("v0", 16), v1 = make<IterVar>({range(i32(2), i32(6)), var("v1"), IterType::kOpaque, ""});
  Block block;
  block.iter_vars = {v0, v1};
  block.name_hint = "B";
  block.reads = {make<BufferRegion>({a, {range(v0->var, i32(4)), range(i32(0), i32(16))}})};
  block.annotations = {{"pragma", string_imm("x")}};
  block.alloc_buffers = {local};
  block.match_buffers = {
      make<MatchBufferRegion>({sub, make<BufferRegion>({a, {range(i32(4), i32(4)), range(v0->var, i32(4))}})})};
  block.body = evaluate(0);
  EXPECT_EQ(print(loop(i, i32(8), realize({Expr(i) + 1, i}, block, lt(i, i32(7))))), R"(A = T.Buffer((16, 16))
for i in range(8):
    with T.block("B"):
        v0 = T.axis.spatial(16, i + 1)
        v1 = T.axis.opaque((2, 8), i)
        T.where(i < 7)
        T.reads(A[v0:v0 + 4, 0:16])
        T.writes()
        T.block_attr({"pragma": "x"})
        A_local = T.alloc_buffer((16,), scope="local")
        sub = T.match_buffer(A[4:8, v0:v0 + 4], (4, 4))
        T.evaluate(0))");
  EXPECT_EQ(print(make<Block>(block)).substr(0, 75),
            "A = T.Buffer((16, 16))\nwith T.block(\"B\", no_realize=True):\n    v0 = T.axis.");
}

TEST(Printer, ScopesLastToTheEndOfTheBlockOrNot) {
  Ref<Var> x = var("x"), data = pointer_var("data", f32), p = pointer_var("p", f32);
  Stmt let = make<LetStmt>({x, i32(1), make<Evaluate>({x})});
  EXPECT_EQ(print(let), "with T.LetStmt(1) as x:\n    T.evaluate(x)");
  EXPECT_EQ(print(loop(var("i"), i32(2), let)), "for i in range(2):\n    x: T.int32 = 1\n    T.evaluate(x)");
  EXPECT_EQ(print(loop(var("i"), i32(2), make<SeqStmt>({{let, evaluate(0)}}))),
            "for i in range(2):\n    with T.LetStmt(1) as x:\n        T.evaluate(x)\n    T.evaluate(0)");
  EXPECT_EQ(print(make<AttrStmt>({string_imm("pragma"), "unroll", i32(1), evaluate(0)})),
            "with T.attr(\"pragma\", \"unroll\", 1):\n    T.evaluate(0)");
  EXPECT_EQ(print(make<AssertStmt>({bool_imm(true), string_imm("bad"), evaluate(0)})),
            "with T.Assert(T.bool(True), \"bad\"):\n    T.evaluate(0)");
  EXPECT_EQ(print(function({}, make<AssertStmt>({bool_imm(true), string_imm("bad"), evaluate(0)}))),
            kHeader + "@T.prim_func\ndef main():\n    assert T.bool(True), \"bad\"\n    T.evaluate(0)");
  auto allocate = [&](Stmt body) { return make<Allocate>({data, f32, {i32(8)}, bool_imm(true), std::move(body), {}}); };
  EXPECT_EQ(print(allocate(evaluate(0))), "with T.allocate([8], \"float32\", \"global\") as data:\n    T.evaluate(0)");
  Buffer view{data, f32, {i32(8)}, {}, {}, i32(0), "view"};
  EXPECT_EQ(print(allocate(make<DeclBuffer>({make<Buffer>(view), make<Evaluate>({data})}))),
            "with T.decl_buffer((8,)) as view:\n    T.evaluate(view.data)");
  view.shape = {i32(4)};
  EXPECT_EQ(print(allocate(make<DeclBuffer>({make<Buffer>(view), make<Evaluate>({data})}))),
            "with T.allocate([8], \"float32\", \"global\") as data:\n    view = T.decl_buffer((4,), data=data)\n"
            "    T.evaluate(data)");
  view.data = p;
  EXPECT_EQ(print(make<DeclBuffer>({make<Buffer>(view), evaluate(0)})),
            "p = T.handle(\"float32\", \"global\")\nwith T.decl_buffer((4,), data=p) as view:\n    T.evaluate(0)");
  Ref<TensorData> values = make<TensorData>({DataType::int_(16), {3}, std::string("\1\0\xff\xff\2\1", 6)});
  EXPECT_EQ(print(make<AllocateConst>({data, values, DataType::int_(16), {i32(3)}, evaluate(0), {}})),
            "with T.allocate_const([1, -1, 258], \"int16\", [3]) as data:\n    T.evaluate(0)");
  Ref<Buffer> a = decl_buffer({i32(8)}, f32, "A");
  EXPECT_EQ(print(make<BufferRealize>({a, {range(i32(0), i32(8))}, bool_imm(true), evaluate(0)})),
            "A = T.Buffer((8,))\nwith T.realize(A[0:8]):\n    T.evaluate(0)");
  EXPECT_EQ(print(make<Prefetch>({make<BufferRegion>({a, {range(i32(2), i32(4))}})})),
            "A = T.Buffer((8,))\nT.prefetch(A, [T.Range(2, 6)])");
}

TEST(Printer, ControlFlow) {
  Ref<Var> v = var("v");
  EXPECT_EQ(print(make<While>({lt(v, i32(10)), evaluate(0)})), "v = T.int32()\nwhile v < 10:\n    T.evaluate(0)");
  EXPECT_EQ(print(make<IfThenElse>({eq(v, i32(1)), evaluate(0), evaluate(1)})),
            "v = T.int32()\nif v == 1:\n    T.evaluate(0)\nelse:\n    T.evaluate(1)");
  EXPECT_EQ(print(make<SeqStmt>({})), "");
  EXPECT_EQ(print(loop(v, i32(2), make<SeqStmt>({}))), "for v in range(2):\n    pass");
}

TEST(Printer, LaunchedThreads) {
  Ref<Var> tx = var("threadIdx_x");
  Ref<IterVar> thread = make<IterVar>({range_of(i32(32)), tx, IterType::kThreadIndex, "threadIdx.x"});
  auto launch = [&] { return make<AttrStmt>({thread, "thread_extent", i32(32), make<Evaluate>({tx})}); };
  EXPECT_EQ(print(function({}, launch())),
            kHeader +
                "@T.prim_func\ndef main():\n"
                "    threadIdx_x = T.launch_thread(\"threadIdx.x\", 32)\n    T.evaluate(threadIdx_x)");
  // One variable launched twice needs a declaration of its own.
  EXPECT_EQ(print(function({}, make<SeqStmt>({{launch(), launch()}}))), kHeader + R"(@T.prim_func
def main():
    threadIdx_x = T.env_thread("threadIdx.x")
    with T.launch_thread(threadIdx_x, 32):
        T.evaluate(threadIdx_x)
    T.launch_thread(threadIdx_x, 32)
    T.evaluate(threadIdx_x))");
}

TEST(Printer, Operators) {
  Ref<Var> a = var("a"), b = var("b"), x = var("x", f32), p = var("p", DataType::bool_()),
           q = var("q", DataType::bool_());
  EXPECT_EQ(print(make<Mul>({make<Add>({a, b}), a})), "(a + b) * a");
  EXPECT_EQ(print(make<Sub>({a, make<Sub>({a, b})})), "a - (a - b)");
  EXPECT_EQ(print(make<Sub>({make<Sub>({a, b}), a})), "a - b - a");
  EXPECT_EQ(print(make<FloorDiv>({a, make<FloorMod>({a, b})})), "a // (a % b)");
  EXPECT_EQ(print(make<Div>({a, b})), "T.Div(a, b)");
  EXPECT_EQ(print(make<Div>({x, x})), "x / x");
  EXPECT_EQ(print(make<Mod>({a, b})), "T.truncmod(a, b)");
  EXPECT_EQ(print(make<Min>({a, b})), "T.min(a, b)");
  EXPECT_EQ(print(make<EQ>({make<LT>({a, b}), p})), "(a < b) == p");
  EXPECT_EQ(print(make<Or>({make<And>({p, q}), make<Not>({make<Or>({p, q})})})), "p and q or not (p or q)");
  EXPECT_EQ(print(make<And>({p, make<And>({p, q})})), "p and (p and q)");
  EXPECT_EQ(print(make<Not>({make<LT>({a, b})})), "not a < b");
  EXPECT_EQ(print(make<EQ>({make<Not>({p}), q})), "(not p) == q");
  EXPECT_EQ(print(make<Select>({p, i32(0), a})), "T.Select(p, 0, a)");
  EXPECT_EQ(print(make<Cast>({DataType::float_(64), x})), "T.Cast(\"float64\", x)");
}

TEST(Printer, ConstructorsWhereOperatorsWouldFold) {
  Ref<Var> a = var("a"), x = var("x", f32), p = var("p", DataType::bool_());
  EXPECT_EQ(print(make<Add>({i32(1), i32(2)})), "T.Add(1, 2)");
  EXPECT_EQ(print(make<Add>({a, i32(0)})), "T.Add(a, 0)");
  EXPECT_EQ(print(make<Mul>({i32(1), a})), "T.Mul(1, a)");
  EXPECT_EQ(print(make<FloorDiv>({a, i32(0)})), "T.FloorDiv(a, 0)");
  EXPECT_EQ(print(make<Mod>({i64(3), i64(4)})), "T.truncmod(T.int64(3), T.int64(4))");
  EXPECT_EQ(print(make<Max>({a, a})), "T.Max(a, a)");
  EXPECT_EQ(print(make<And>({bool_imm(true), p})), "T.And(T.bool(True), p)");
  EXPECT_EQ(print(make<Not>({bool_imm(true)})), "T.Not(T.bool(True))");
  Expr vector = make<Broadcast>({p, i32(4)});
  EXPECT_EQ(print(make<And>({vector, vector})), "T.And(T.Broadcast(p, 4), T.Broadcast(p, 4))");
  EXPECT_EQ(print(make<LT>({i32(1), i32(2)})), "T.LT(1, 2)");
  EXPECT_EQ(print(make<Sub>({a, i32(-1)})), "a - -1");
}

/// Every pair of operands that may fold: what prints infix must be what ir/build.h leaves alone.
TEST(Printer, InfixMeansWhatOperatorsBuild) {
  Ref<Var> a = var("a"), x = var("x", f32), p = var("p", DataType::bool_());
  std::vector<Expr> ints = {a,
                            i32(0),
                            i32(1),
                            i32(-1),
                            i32(7),
                            make<Broadcast>({i32(0), i32(4)}),
                            make<Broadcast>({i32(1), i32(4)}),
                            make<Broadcast>({i32(5), i32(4)}),
                            make<Ramp>({a, i32(1), i32(4)})};
  std::vector<Expr> floats = {x, float_imm(f32, 0), float_imm(f32, -0.0), float_imm(f32, 1), float_imm(f32, 2)};
  std::vector<Expr> bools = {p, bool_imm(true), bool_imm(false)};
  int infix = 0;
  auto check = [&](Kind kind, const Expr& l, const Expr& r, const Expr& node) {
    std::string text = print(node);
    bool constructor = text.starts_with("T." + kind_name(kind) + "(");
    if (constructor || kind == Kind::kMod) return;  // T.truncmod never folds
    ++infix;
    EXPECT_TRUE(structural_equal(binary(kind, l, r), node)) << text;
  };
  auto sweep = [&](const std::vector<Expr>& operands, auto arithmetic) {
    for (const Expr& l : operands) {
      for (const Expr& r : operands) {
        if (l.dtype() == r.dtype()) arithmetic(l, r);
      }
    }
  };
#define CHECK_BINARY(Name) check(Kind::k##Name, l, r, make<Name>({l, r}));
  auto common = [&](const Expr& l, const Expr& r) {
    CHECK_BINARY(Add)
    CHECK_BINARY(Sub)
    CHECK_BINARY(Mul)
    CHECK_BINARY(Div)
    CHECK_BINARY(FloorDiv)
    CHECK_BINARY(FloorMod)
    CHECK_BINARY(Min)
    CHECK_BINARY(Max)
    CHECK_BINARY(EQ) CHECK_BINARY(NE) CHECK_BINARY(LT) CHECK_BINARY(LE) CHECK_BINARY(GT) CHECK_BINARY(GE)
  };
  sweep(ints, common);
  sweep(ints, [&](const Expr& l, const Expr& r) { CHECK_BINARY(Mod) });
  sweep(floats, common);
  sweep(bools, [&](const Expr& l, const Expr& r) { CHECK_BINARY(And) CHECK_BINARY(Or) CHECK_BINARY(EQ) });
#undef CHECK_BINARY
  EXPECT_GT(infix, 300);
}

TEST(Printer, Constants) {
  EXPECT_EQ(print(i32(-3)), "-3");
  EXPECT_EQ(print(int_imm(DataType::int_(16), 1)), "T.int16(1)");
  EXPECT_EQ(print(int_imm(DataType::uint(64), -1)), "T.uint64(18446744073709551615)");
  EXPECT_EQ(print(i64(std::numeric_limits<int64_t>::min())), "T.int64(-9223372036854775808)");
  EXPECT_EQ(print(float_imm(f32, 0.1)), "T.float32(0.10000000149011612)");
  EXPECT_EQ(print(float_imm(DataType::float_(64), 1e300)), "T.float64(1e+300)");
  EXPECT_EQ(print(float_imm(f32, -0.0)), "T.float32(-0.0)");
  EXPECT_EQ(print(float_imm(f32, -std::numeric_limits<double>::infinity())), "T.float32(\"-inf\")");
  EXPECT_EQ(print(min_value(f32)), "T.float32(-3.4028234663852886e+38)");
  EXPECT_EQ(print(float_imm(f32, std::nan(""))), "T.float32(\"nan\")");
  EXPECT_EQ(print(float_imm(DataType::bfloat16(), 2)), "T.bfloat16(2.0)");
  EXPECT_EQ(print(float_imm(f32, 2), {.float_dtype = "float32"}), "2.0");
  EXPECT_EQ(print(i32(2), {.int_dtype = "int64"}), "T.int32(2)");
  EXPECT_EQ(print(string_imm("a\"b\\\t\x01 é")), "\"a\\\"b\\\\\\t\\x01 é\"");
  EXPECT_EQ(print(string_imm("\xff")), "\"\\xff\"");
}

TEST(Printer, VectorsAndAccesses) {
  Ref<Buffer> a = decl_buffer({i32(64)}, f32, "A"), scalar = decl_buffer({}, f32, "S");
  Ref<Var> i = var("i");
  auto at = [&](Expr index) { return print(load(a, {std::move(index)})); };
  EXPECT_EQ(at(make<Ramp>({i, i32(1), i32(4)})), "A[i:i + 4]");
  EXPECT_EQ(at(make<Ramp>({i32(8), i32(2), i32(4)})), "A[8:16:2]");
  EXPECT_EQ(at(make<Ramp>({i, i32(-1), i32(4)})), "A[T.Ramp(i, -1, 4)]");
  EXPECT_EQ(at(make<Ramp>({i, i, i32(4)})), "A[T.Ramp(i, i, 4)]");
  EXPECT_EQ(print(load(scalar, {})), "S[()]");
  Expr mask = make<Broadcast>({bool_imm(true), i32(4)}), index = make<Ramp>({i, i32(1), i32(4)});
  EXPECT_EQ(print(make<BufferLoad>({a, {index}, mask})),
            "A.vload([T.Ramp(i, 1, 4)], predicate=T.Broadcast(T.bool(True), 4))");
  Stmt masked = make<BufferStore>({a, make<Broadcast>({float_imm(f32, 0), i32(4)}), {index}, mask});
  EXPECT_EQ(print(masked),
            "A = T.Buffer((64,))\ni = T.int32()\nA.vstore([T.Ramp(i, 1, 4)], T.Broadcast(T.float32(0.0), 4), "
            "predicate=T.Broadcast(T.bool(True), 4))");
  Expr lanes = make<Mul>({make<Call>({DataType::int_(32), intrinsic_op(Intrinsic::k_vscale), {}}), i32(8)});
  EXPECT_EQ(print(make<Ramp>({i, i32(1), lanes})), "T.Ramp(i, 1, T.vscale() * 8)");
  EXPECT_EQ(print(make<Shuffle>({{index}, {i32(2)}})), "T.Shuffle([T.Ramp(i, 1, 4)], [2])");
}

TEST(Printer, CallsKeepTheirType) {
  Ref<Var> x = var("x", f32), n = var("n");
  EXPECT_EQ(print(call(Intrinsic::k_exp, {x})), "T.exp(x)");
  EXPECT_EQ(print(make<Call>({DataType::float_(64), intrinsic_op(Intrinsic::k_exp), {x}})),
            "T.call_intrin(\"float64\", \"tir.exp\", x)");
  EXPECT_EQ(print(call(DataType::int_(32), "tir.call_extern", {string_imm("f"), n})),
            "T.call_extern(\"int32\", \"f\", n)");
  EXPECT_EQ(print(call(DataType::float_(32), "tir.reinterpret", {n})), "T.reinterpret(\"float32\", n)");
  EXPECT_EQ(print(call(DataType::int_(32), "tir.tvm_struct_get", {n, i32(0), i32(1)})),
            "T.tvm_struct_get(n, 0, 1, \"int32\")");
  EXPECT_EQ(print(call(DataType::float_(32), "mine.op", {x})), "T.call_intrin(\"float32\", \"mine.op\", x)");
  EXPECT_EQ(print(call(Intrinsic::k_shift_left, {n, i32(0)})), "T.call_intrin(\"int32\", \"tir.shift_left\", n, 0)");
  EXPECT_EQ(print(call(DataType::int_(32), "tir.tvm_storage_sync", {string_imm("shared")})),
            "T.tvm_storage_sync(\"shared\")");
  Ref<Buffer> a = decl_buffer({i32(8)}, f32, "A");
  EXPECT_EQ(print(call(DataType::handle(), "tir.tvm_tuple", {make<BufferRegion>({a, {range(n, i32(4))}})})),
            "T.tvm_tuple(T.BufferRegion(A, [I.Range(n, n + 4)]))");
  EXPECT_EQ(print(make<Call>({DataType::int_(32), make<GlobalVar>({"f"}), {n}})),
            "T.Call(\"int32\", I.GlobalVar(\"f\"), [n])");
}

TEST(Printer, AuxiliaryNodes) {
  Ref<Var> a = var("a"), x = var("x"), y = var("y");
  EXPECT_EQ(verbose(make<Let>({x, i32(1), Expr(x) + 1})), "x = T.int32()\nT.Let(x + 1, where={x: 1})");
  EXPECT_EQ(print(range(i32(0), i32(10))), "I.Range(0, 10)");
  EXPECT_EQ(verbose(make<IterVar>({range_of(i32(8)), a, IterType::kDataPar, ""})),
            "a = T.int32()\nT.iter_var(a, T.Range(0, 8), \"DataPar\", \"\")");
  EXPECT_EQ(print(make<PrimType>({f32})), "T.float32");
  EXPECT_EQ(print(make<PointerType>({make<PrimType>({DataType::int_(32)}), "global"})),
            "T.handle(\"int32\", \"global\")");
  EXPECT_EQ(print(make<TupleType>({{make<PrimType>({f32}), make<PrimType>({DataType::int_(32)})}})),
            "T.Tuple(T.float32, T.int32)");
  EXPECT_EQ(print(make<CommReducer>({{x}, {y}, {Expr(x) + y}, {i32(0)}})), "T.comm_reducer(lambda x, y: x + y, [0])");
  EXPECT_EQ(print(make<IndexMap>({{x, y}, {Expr(y), floordiv(Expr(x), 4)}, {}})),
            "T.index_map(lambda x, y: (y, x // 4))");
  EXPECT_EQ(print(make<IndexMap>({{x}, {x}, {}})), "T.index_map(lambda x: (x,))");
  Ref<Buffer> a2 = decl_buffer({i32(8), i32(8)}, f32, "A");
  EXPECT_EQ(verbose(make<BufferRegion>({a2, {range(i32(2), i32(4)), range(i32(3), i32(1))}})),
            "A = T.Buffer((8, 8))\nA[2:6, 3]");
  EXPECT_EQ(print(make<Op>({"tir.exp"})), "I.Op(\"tir.exp\")");
  EXPECT_EQ(print(make<Dict>({{{"k", f32 == f32 ? NodeRef(i32(1)) : NodeRef()}}})), "{\"k\": 1}");
  EXPECT_EQ(print(NodeRef()), "None");
}

TEST(Printer, NamesAreValidAndUnique) {
  EXPECT_EQ(to_identifier("a.b-c", "v"), "a_b_c");
  EXPECT_EQ(to_identifier("", "v"), "v");
  EXPECT_EQ(to_identifier("1x", "v"), "_1x");
  EXPECT_EQ(to_identifier("lambda", "v"), "lambda_");
  EXPECT_EQ(to_identifier("α", "v"), "α");
  EXPECT_EQ(to_identifier("x²", "v"), "x_");  // normalization would make it x2
  EXPECT_EQ(to_identifier("x\xff", "v"), "x_");
  EXPECT_FALSE(is_identifier("2I"));
  Ref<Var> i = var("i"), other = var("i"), third = var("i_1");
  EXPECT_EQ(print(loop(i, i32(2), loop(third, i, loop(other, other, evaluate(0))))),
            "i_3 = T.int32()\nfor i in range(2):\n    for i_1, i_2 in T.grid(i, i_3):\n        T.evaluate(0)");
  EXPECT_EQ(print(loop(var("T"), i32(2), evaluate(0))), "for T_1 in range(2):\n    T.evaluate(0)");
  // Names are free again behind their scope.
  EXPECT_EQ(print(make<SeqStmt>({{loop(var("i"), i32(2), evaluate(0)), loop(var("i"), i32(2), evaluate(1))}})),
            "for i in range(2):\n    T.evaluate(0)\nfor i in range(2):\n    T.evaluate(1)");
}

TEST(Printer, Metadata) {
  Ref<StringImm> lines = string_imm("a\nb");
  Stmt s = make<SeqStmt>({{make<Evaluate>({lines}), make<Evaluate>({string_imm("a\nb")})}});
  std::string text = print(s);
  EXPECT_EQ(text,
            "# Metadata omitted. Use show_meta=True in script() method to show it.\n\n"
            "T.evaluate(metadata[\"tir.StringImm\"][0])\nT.evaluate(metadata[\"tir.StringImm\"][0])");
  std::string shown = print(s, {.show_meta = true});
  EXPECT_TRUE(shown.starts_with("metadata = I.load_json(\"{\\\"tilewright\\\"")) << shown;
}

TEST(Printer, UnderlinesAndAnnotates) {
  Ref<PrimFunc> func = matmul(4);
  const Block& root = *func->body.as<BlockRealize>()->block;
  const For& outer = *root.body.as<For>();
  const For& middle = *outer.body.as<For>();
  const Stmt& inner = middle.body;
  std::string text = print(func, {.num_context_lines = 0, .obj_to_underline = {outer.body}});
  EXPECT_EQ(text,
            "(... 5 lines skipped ...)\n    for i, j, k in T.grid(4, 4, 4):\n           ^                 ^\n(... 7 "
            "lines skipped ...)");
  text = print(func, {.num_context_lines = 0, .obj_to_annotate = {{outer.body, "the second"}}});
  EXPECT_EQ(
      text,
      "(... 5 lines skipped ...)\n    # the second\n    for i, j, k in T.grid(4, 4, 4):\n(... 7 lines skipped ...)");
  const Ref<Block>& block = inner.as<For>()->body.as<BlockRealize>()->block;
  text = print(func, {.num_context_lines = 0, .obj_to_annotate = {{block, "this one"}}});
  EXPECT_EQ(text,
            "(... 6 lines skipped ...)\n        # this one\n        with T.block(\"C\"):\n(... 6 lines skipped ...)");
  text = print(func, {.print_line_numbers = true,
                      .num_context_lines = 0,
                      .path_to_underline = {"<root>.body.block.body.body.body.body.block.body.value.b.a"}});
  EXPECT_EQ(text,
            "(... 12 lines skipped ...)\n13             C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n"
            "                                       ^^^^^^^^^");
  text = print(func, {.num_context_lines = 0, .path_to_underline = {"<root>.buffer_map[1].shape[0].value"}});
  EXPECT_EQ(text,
            "(... 3 lines skipped ...)\n"
            "def main(A: T.Buffer((4, 4), \"float32\"), B: T.Buffer((4, 4), \"float32\"), C: T.Buffer((4, 4), "
            "\"float32\")):\n"
            "                                                      ^\n(... 9 lines skipped ...)");
}

TEST(Printer, RendersDiagnostics) {
  Ref<PrimFunc> func = matmul(4);
  Diagnostic d = schedule_error("split/P1", "the loop is wrong", "take another");
  d.nodes = {keep(func->body.as<BlockRealize>()->block->body.as<For>()->body)};
  EXPECT_EQ(located(d, func).render(), R"([split/P1] the loop is wrong
  in the program:
  (... 3 lines skipped ...)
   4 def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
   5     # with T.block("root"):
   6     for i, j, k in T.grid(4, 4, 4):
                ^                 ^
   7         with T.block("C"):
   8             vi, vj, vk = T.axis.remap("SSR", [i, j, k])
  (... 5 lines skipped ...)
  hint: take another)");
  d.nodes = {keep(i32(7))};
  EXPECT_EQ(located(d, func).render(), "[split/P1] the loop is wrong\n  about:\n  7\n  hint: take another");
}

TEST(Printer, WhatAStepWouldHaveMadeIsShownWhereItIsNow) {
  Ref<PrimFunc> func = matmul(4);
  Ref<For> loop = func->body.as<BlockRealize>()->block->body.cast<For>();
  For changed = *loop;
  changed.kind = ForKind::kParallel;
  Diagnostic d = schedule_error("split/P1", "the loop is wrong", "take another");
  d.nodes = {keep(loop)};
  std::string there = located(d, func).render();
  d.nodes = {keep(make(std::move(changed)))};
  EXPECT_EQ(located(d, func).render(), there);
  const BlockRealize* realize = nullptr;
  visit(func->body, [&](const Ref<BlockRealize>& r) { realize = r.as<BlockRealize>(); });
  BlockRealize where = *realize;
  where.predicate = lt(loop->loop_var, i32(3));
  d.nodes = {keep(make(std::move(where)))};
  std::string shown = located(d, func).render();
  EXPECT_NE(shown.find("with T.block(\"C\"):\n             ^^"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("about:"), std::string::npos);
  // A new node is shown by its first lines.
  d.nodes = {keep(renew_defs(func->body.as<BlockRealize>()->block->body))};
  shown = located(d, func).render();
  EXPECT_NE(shown.find("about:"), std::string::npos);
  EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), 16);
}

TEST(Printer, DiffShowsLinesThatDiffer) {
  EXPECT_EQ(diff(matmul(4), matmul(4)), "");
  EXPECT_EQ(diff_text("a\nb\nc\nd\ne\nf\ng\nh", "a\nb\nc\nd\nE\nf\ng\nh\ni"),
            "  ...\n  b\n  c\n  d\n- e\n+ E\n  f\n  g\n  h\n+ i");
  EXPECT_EQ(diff_text("", "x"), "+ x");
  EXPECT_EQ(diff_text("x\ny", "y\nx"), "- x\n  y\n+ x");
}

TEST(Printer, OptionsThatMakeNoSense) {
  EXPECT_EQ(find_invalid({.ir_prefix = "2I"})->code, "print/prefix");
  EXPECT_EQ(find_invalid({.int_dtype = "int33"})->code, "print/dtype");
  EXPECT_EQ(find_invalid({.indent_spaces = 0})->code, "print/indent");
  EXPECT_FALSE(find_invalid({}));
}

TEST(Printer, AnyDepth) {
  Ref<Var> x = var("x"), y = var("y");
  Expr e = x;
  for (int i = 0; i < 10000; ++i) e = i % 2 ? Expr(make<Add>({e, y})) : Expr(make<Mul>({y, e}));
  EXPECT_GT(print(e).size(), 40000u);
  Stmt s = evaluate(0);
  for (int i = 0; i < 5000; ++i) s = make<IfThenElse>({lt(x, y), loop(var("i"), x, s), {}});
  std::string text = print(s);
  EXPECT_LT(text.size(), 10000000u);
  for (int i = 0; i < 4000; ++i) s = make<LetStmt>({var("z"), x, s});
  EXPECT_LT(print(function({}, s)).size(), 10000000u);
}

TEST(Interval, StopAndExtentAreInverse) {
  Ref<Var> x = var("x"), n = var("n");
  std::vector<Expr> values = {i32(0),
                              i32(1),
                              i32(5),
                              i32(2147483647),
                              x,
                              n,
                              Expr(x) + 1,
                              Expr(x) * 4,
                              Expr(n) - x,
                              make<Sub>({n, x}),
                              make<Add>({x, i32(0)}),
                              make<Sub>({make<Add>({x, n}), x})};
  for (const Expr& min : values) {
    for (const Expr& extent : values) {
      EXPECT_TRUE(same_expr(extent_of(min, stop_of(min, extent)), extent)) << print(min) << " " << print(extent);
    }
  }
  EXPECT_EQ(print(extent_of(Expr(x) + 2, Expr(x) + 6)), "4");
  EXPECT_EQ(print(stop_of(x, make<Sub>({n, x}))), "n");
}

}  // namespace
}  // namespace tilewright::script
