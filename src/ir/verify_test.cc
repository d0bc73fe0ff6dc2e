#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/verify_sample.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using namespace sample;

std::string code_of(const NodeRef& node, Stage stage = Stage::kScheduled) {
  Status status = verify(node, stage);
  return status.ok() ? "" : status.error().code;
}

TEST(Verify, AcceptsWellFormedPrograms) {
  EXPECT_EQ(code_of(Sample().func()), "");
  EXPECT_EQ(code_of(as_module(Sample().func())), "");
  EXPECT_EQ(code_of(renew_defs(Sample().func())), "");
  EXPECT_EQ(code_of(Expr(var("x")) + 1), "");  // an expression outside of functions may have free variables
  EXPECT_EQ(code_of({}), "");
}

TEST(Verify, Stages) {
  EXPECT_EQ(code_of(Sample().func(), Stage::kLowered), "verify/stage");
  Ref<Buffer> b = buffer("B");
  Stmt realize = make<BufferRealize>({b, {range_of(i32(8))}, bool_imm(true), nop()});
  EXPECT_EQ(code_of(realize), "");
  EXPECT_EQ(code_of(realize, Stage::kLowered), "verify/stage");
  Stmt prefetch = make<Prefetch>({make<BufferRegion>({b, {range_of(i32(8))}})});
  EXPECT_EQ(code_of(prefetch), "");
  EXPECT_EQ(code_of(prefetch, Stage::kLowered), "verify/stage");
  EXPECT_EQ(code_of(function({}, prefetch)), "verify/buffer");
}

TEST(Verify, VariablesAreDefinedOnceAndBeforeTheyAreUsed) {
  Ref<Var> x = var("x"), i = var("i");
  Stmt use = make<Evaluate>({x});
  EXPECT_EQ(code_of(function({}, use)), "verify/undefined");
  EXPECT_EQ(code_of(function({}, make<LetStmt>({x, i32(1), use}))), "");
  EXPECT_EQ(code_of(function({}, make<LetStmt>({x, x, use}))), "verify/undefined");
  EXPECT_EQ(code_of(function({}, seq({make<LetStmt>({x, i32(1), use}), use}))), "verify/undefined");
  EXPECT_EQ(code_of(function({}, loop(i, i, nop()))), "verify/undefined");
  EXPECT_EQ(code_of(function({}, loop(i, i32(4), loop(i, i32(4), nop())))), "verify/redefined");
  Stmt one = loop(i, i32(4), make<Evaluate>({call(Intrinsic::k_likely, {i})}));
  EXPECT_EQ(code_of(function({}, make<SeqStmt>({{one, one}}))), "verify/redefined");
  EXPECT_EQ(code_of(function({}, make<SeqStmt>({{one, renew_defs(one)}}))), "");
  // The variable of a Let belongs to the expression, which may be repeated.
  Expr let = make<Let>({x, i32(1), Expr(x) + 1});
  EXPECT_EQ(code_of(function({}, make<Evaluate>({make<Add>({let, let})}))), "");
  Status status = verify(function({}, use), Stage::kScheduled);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(kept(status.error().nodes.at(0)), x);
}

TEST(Verify, SizesOfParametersAreDefinedByThem) {
  Ref<Var> n = var("n");
  Ref<Buffer> a = buffer("A", {n}), b = buffer("B", {Expr(n) + 1});
  EXPECT_EQ(code_of(function({b, a}, make<Evaluate>({call(Intrinsic::k_likely, {n})}))), "");
  EXPECT_EQ(code_of(function({b}, nop())), "verify/undefined");
}

TEST(Verify, Buffers) {
  Sample s;
  EXPECT_EQ(code_of(function({s.b}, Sample::root(loop(s.i, i32(8), s.realize())))), "verify/buffer");
  Ref<Buffer> c = buffer("C");
  Stmt write = store(c, number(1), {i32(0)});
  EXPECT_EQ(code_of(function({}, make<Allocate>({c->data, f32, {i32(8)}, bool_imm(true), write, {}}))), "");
  EXPECT_EQ(code_of(function({}, make<DeclBuffer>({c, write}))), "verify/undefined");
  Stmt declared = make<DeclBuffer>({c, write});
  EXPECT_EQ(code_of(function({}, make<Allocate>({c->data, f32, {i32(8)}, bool_imm(true), declared, {}}))), "");
  Stmt twice = make<DeclBuffer>({c, declared});
  EXPECT_EQ(code_of(function({}, make<Allocate>({c->data, f32, {i32(8)}, bool_imm(true), twice, {}}))),
            "verify/redefined");
  Buffer other = *c;
  other.data = pointer_var("p", DataType::int_(32));
  EXPECT_EQ(code_of(function({make<Buffer>(other)}, nop())), "verify/pointer");
}

TEST(Verify, Axes) {
  Sample s;
  s.axis = make<IterVar>({range_of(i32(8)), s.axis->var, IterType::kVectorized, ""});
  s.block.iter_vars = {s.axis};
  EXPECT_EQ(code_of(s.func()), "verify/axis");
  s.block.iter_vars = {make<IterVar>({{}, s.axis->var, IterType::kDataPar, ""})};
  EXPECT_EQ(code_of(s.func()), "verify/axis");
  s.block.iter_vars = {make<IterVar>({range_of(i64(8)), s.axis->var, IterType::kDataPar, ""})};
  EXPECT_EQ(code_of(s.func()), "verify/axis");
}

TEST(Verify, BlocksStandOnceInTheirRealization) {
  Sample s;
  EXPECT_EQ(code_of(function({s.a, s.b}, make<Block>(s.block))), "verify/block");
  EXPECT_EQ(code_of(function({s.a, s.b}, loop(s.i, i32(8), s.realize()))), "verify/root");
  Ref<Block> shared = make<Block>(s.block);
  auto one = [&](const Ref<Var>& v) { return loop(v, i32(8), make<BlockRealize>({{v}, bool_imm(true), shared})); };
  Stmt both = make<SeqStmt>({{one(var("i")), one(var("j"))}});
  EXPECT_EQ(code_of(function({s.a, s.b}, Sample::root(both))), "verify/redefined");
  Block empty;
  empty.name_hint = "E";
  empty.body = nop();
  Stmt twice = realized(make<Block>(empty));
  EXPECT_EQ(code_of(function({}, Sample::root(make<SeqStmt>({{twice, twice}})))), "verify/block");
}

TEST(Verify, Regions) {
  Sample s;
  s.block.reads = {make<BufferRegion>({s.a, {}})};
  EXPECT_EQ(code_of(s.func()), "verify/region");
  Sample m;
  Ref<Buffer> view = buffer("view", {i32(2), i32(2)});
  m.block.match_buffers = {make<MatchBufferRegion>({view, region(m.a, i32(0), i32(4))})};
  EXPECT_EQ(code_of(m.func()), "verify/region");
  m.block.match_buffers = {make<MatchBufferRegion>({buffer("view", {i32(4)}), region(m.a, i32(0), i32(4))})};
  EXPECT_EQ(code_of(m.func()), "");
}

TEST(Verify, Threads) {
  auto threads = [](const std::string& tag, int extent, Stmt body) {
    Ref<IterVar> thread = make<IterVar>({{}, var(tag), IterType::kThreadIndex, tag});
    return Stmt(make<For>({var("t"), i32(0), i32(extent), ForKind::kThreadBinding, thread, {}, std::move(body)}));
  };
  auto code = [&](Stmt body) { return code_of(function({}, std::move(body)), Stage::kLowered); };
  EXPECT_EQ(code(threads("threadIdx.x", 32, nop())), "");
  EXPECT_EQ(code(threads("threadIdx.w", 32, nop())), "verify/thread");
  EXPECT_EQ(code(threads("threadIdx.x", 32, threads("threadIdx.x", 32, nop()))), "");
  EXPECT_EQ(code(threads("threadIdx.x", 32, threads("threadIdx.x", 16, nop()))), "verify/thread");
  EXPECT_EQ(code(threads("threadIdx.x", 32, threads("vthread", 2, threads("vthread", 4, nop())))), "");
  EXPECT_EQ(code(threads("threadIdx.x", 32, threads("threadIdx.y", 2, nop()))), "");
  auto siblings = [&](int second) {
    return threads("blockIdx.x", 4,
                   make<SeqStmt>({{threads("threadIdx.x", 32, nop()), threads("threadIdx.x", second, nop())}}));
  };
  EXPECT_EQ(code(siblings(32)), "");
  EXPECT_EQ(code(siblings(16)), "verify/thread");
  // Two kernels may differ.
  EXPECT_EQ(code(make<SeqStmt>({{threads("threadIdx.x", 32, nop()), threads("threadIdx.x", 16, nop())}})), "");
  Ref<IterVar> env = make<IterVar>({{}, var("tx"), IterType::kThreadIndex, "threadIdx.x"});
  Stmt launch = make<AttrStmt>({env, "thread_extent", i32(8), make<Evaluate>({call(Intrinsic::k_likely, {env->var})})});
  EXPECT_EQ(code(make<SeqStmt>({{launch, launch}})), "");
}

TEST(Verify, SequencesHaveTwoStatements) {
  EXPECT_EQ(code_of(function({}, make<SeqStmt>({{nop()}}))), "verify/sequence");
  EXPECT_EQ(code_of(function({}, make<SeqStmt>({}))), "verify/sequence");
}

TEST(Verify, Calls) {
  Ref<Var> x = var("x", f32), n = var("n");
  auto code = [&](const Expr& e) { return code_of(make<LetStmt>({x, number(1), make<Evaluate>({e})})); };
  EXPECT_EQ(code(call(Intrinsic::k_exp, {x})), "");
  EXPECT_EQ(code(call(DataType::float_(64), "tir.exp", {x})), "verify/intrinsic");
  EXPECT_EQ(code(call(DataType::int_(32), "tir.exp", {i32(1)})), "verify/intrinsic");
  EXPECT_EQ(code(call(f32, "tir.pow", {x})), "verify/intrinsic");
  EXPECT_EQ(code(call(f32, "some.op", {x})), "");
  auto module = [&](std::vector<NodeRef> args) {
    Ref<GlobalVar> callee = make<GlobalVar>({"callee"});
    PrimFunc inner{{n}, {}, make<TupleType>({}), {}, nop()};
    Stmt body = make<Evaluate>({make<Call>({DataType::void_(), callee, std::move(args)})});
    return make<Module>({{{"main", function({}, body)}, {"callee", make<PrimFunc>(inner)}}, {}});
  };
  EXPECT_EQ(code_of(module({i32(1)})), "");
  EXPECT_EQ(code_of(module({})), "verify/call");
  EXPECT_EQ(code_of(module({i64(1)})), "verify/call");
  Stmt unknown = make<Evaluate>({make<Call>({DataType::void_(), make<GlobalVar>({"nobody"}), {}})});
  EXPECT_EQ(code_of(make<Module>({{{"main", function({}, unknown)}}, {}})), "verify/call");
}

TEST(Verify, AnnotationsAndFunctions) {
  Ref<Var> i = var("i");
  auto annotated = [&](NodeRef value) {
    return function({}, make<For>({i, i32(0), i32(4), ForKind::kSerial, {}, {{"key", std::move(value)}}, nop()}));
  };
  EXPECT_EQ(code_of(annotated(make<List>({{i32(1), string_imm("x")}}))), "");
  EXPECT_EQ(code_of(annotated(nop())), "verify/annotation");
  EXPECT_EQ(code_of(annotated({})), "verify/annotation");
  PrimFunc func = *function({buffer("A")}, nop());
  func.params = {};
  EXPECT_EQ(code_of(make<PrimFunc>(func)), "verify/function");
  PrimFunc symbol = *function({}, nop());
  symbol.attrs.set("global_symbol", i32(1));
  EXPECT_EQ(code_of(make<PrimFunc>(symbol)), "verify/function");
  EXPECT_EQ(code_of(make<Module>({{{"main", Func()}}, {}})), "verify/function");
}

TEST(Verify, AnyDepth) {
  Stmt s = nop();
  for (int i = 0; i < 8000; ++i) s = make<IfThenElse>({lt(i32(0), var("n")), s, {}});
  EXPECT_EQ(code_of(function({}, s)), "verify/undefined");
  s = nop();
  for (int i = 0; i < 8000; ++i) s = loop(var("i"), i32(2), s);
  EXPECT_EQ(code_of(function({}, s)), "");
}

}  // namespace
}  // namespace tilewright
