#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/compact.h"
#include "ir/json.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

std::string code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Exception& e) {
    return e.diagnostic().code;
  }
  return "";
}

/// for i in range(extent): A[i] = A[i] + value
Stmt add_loop(const Ref<Buffer>& a, int extent, double value, const std::string& name = "i") {
  Ref<Var> i = var(name);
  return loop(i, i32(extent), store(a, load(a, {i}) + float_imm(DataType::float_(32), value), {i}));
}

Ref<PrimFunc> add_func(int extent, double value, const std::string& name = "i") {
  Ref<Buffer> a = decl_buffer({i32(extent)}, DataType::float_(32), "A");
  Ref<Var> handle = make<Var>({"a", make<PointerType>({make<PrimType>({DataType::void_()}), ""}), false});
  PrimFunc func{{handle}, {{handle, a}}, make<TupleType>({{}}), {}, add_loop(a, extent, value, name)};
  func.attrs.set("global_symbol", string_imm("main"));
  return make(std::move(func));
}

TEST(Make, DerivesTypesAndDepth) {
  Expr e = var("x") + i32(1);
  EXPECT_EQ(e.dtype(), DataType::int_(32));
  EXPECT_EQ(e.depth(), 3u);  // Add, Var, PrimType
  EXPECT_EQ(lt(var("x"), var("y")).dtype(), DataType::bool_());
  EXPECT_EQ(make<Ramp>({i32(0), i32(1), i32(8)}).dtype(), DataType::int_(32, 8));
}

TEST(Make, RefusesWhatDoesNotFit) {
  Ref<Var> x = var("x"), y = var("y", DataType::float_(32));
  Ref<Buffer> a = decl_buffer({i32(4), i32(4)}, DataType::float_(32), "A");
  EXPECT_EQ(code_of([&] { make<Add>({x, y}); }), "ir/dtype-mismatch");
  EXPECT_EQ(code_of([&] { make<Add>({x, {}}); }), "ir/missing-operand");
  EXPECT_EQ(code_of([&] { make<And>({x, x}); }), "ir/not-bool");
  EXPECT_EQ(code_of([&] { make<Mod>({y, y}); }), "ir/integer-only");
  EXPECT_EQ(code_of([&] { load(a, {x}); }), "ir/index-count");
  EXPECT_EQ(code_of([&] { load(a, {x, y}); }), "ir/index-dtype");
  EXPECT_EQ(code_of([&] { load(a, {ramp(x, i32(1), 4), x}); }), "ir/vector-index");
  EXPECT_EQ(code_of([&] { make<BufferLoad>({a, {x, ramp(x, i32(1), 4)}, bool_imm(true)}); }), "ir/predicate-lanes");
  EXPECT_EQ(code_of([&] { make<BufferStore>({a, x, {x, x}, {}}); }), "ir/store-dtype");
  EXPECT_EQ(code_of([&] { make<Ramp>({x, i32(1), x}); }), "ir/lanes");
  EXPECT_EQ(code_of([&] { make<Broadcast>({ramp(x, i32(1), 4), i32(4)}); }), "ir/vector-of-vector");
  EXPECT_EQ(code_of([&] { make<IntImm>({DataType::float_(32), 1}); }), "ir/int-dtype");
  EXPECT_EQ(code_of([&] { make<IntImm>({DataType::int_(8), 300}); }), "ir/int-range");
  EXPECT_EQ(code_of([&] { make<FloatImm>({DataType::int_(32), 1}); }), "ir/float-dtype");
  EXPECT_EQ(code_of([&] { make<Cast>({DataType::int_(32, 4), x}); }), "ir/cast-lanes");
  EXPECT_EQ(code_of([&] { make<Cast>({DataType::bool_(), var("pointer", DataType::handle())}); }), "ir/cast-handle");
  EXPECT_EQ(code_of([&] { make<Add>({a->data, a->data}); }), "ir/handle-arithmetic");
  EXPECT_EQ(code_of([&] { make<Call>({DataType::int_(32), x, {}}); }), "ir/call-op");
  Buffer bad = *a;
  bad.strides = std::vector<Expr>(a->shape.size() + 1, i32(1));
  EXPECT_EQ(code_of([&] { make<Buffer>(bad); }), "ir/buffer-strides");
  bad = *a;
  bad.data = x;
  EXPECT_EQ(code_of([&] { make<Buffer>(bad); }), "ir/buffer-data");
  bad = *a;
  bad.elem_offset = string_imm("o");
  EXPECT_EQ(code_of([&] { make<Buffer>(bad); }), "ir/index-dtype");
  For thread{x, i32(0), i32(4), ForKind::kThreadBinding, {}, {}, nop()};
  EXPECT_EQ(code_of([&] { make<For>(thread); }), "ir/thread-binding");
  Ref<Block> block = make<Block>(
      {{make<IterVar>({range_of(i32(4)), x, IterType::kDataPar, ""})}, {}, {}, "B", {}, {}, {}, {}, nop(), {}});
  EXPECT_EQ(code_of([&] { realized(block); }), "ir/missing-binding");
}

TEST(Make, RefusesTreesThatAreTooDeep) {
  Expr e = var("x");
  EXPECT_EQ(code_of([&] {
              Ref<Var> y = var("y");
              for (uint32_t i = 0; i < kMaxDepth + 1; ++i) e = make<Add>({e, y});
            }),
            "ir/too-deep");
}

TEST(Build, PromotesAndFolds) {
  Ref<Var> x = var("x"), n = var("n", DataType::int_(64));
  EXPECT_EQ((Expr(x) + n).dtype(), DataType::int_(64));
  EXPECT_EQ((Expr(x) + float_imm(DataType::float_(32), 1)).dtype(), DataType::float_(32));
  EXPECT_EQ(*const_int(floordiv(i32(-7), i32(2))), -4);
  EXPECT_EQ(*const_int(truncdiv(i32(-7), i32(2))), -3);
  EXPECT_EQ(*const_int(floormod(i32(-7), i32(2))), 1);
  EXPECT_TRUE(same_expr(Expr(x) + 0, x));
  EXPECT_TRUE(same_expr(Expr(x) * 1, x));
  EXPECT_TRUE(is_const_int(Expr(x) * 0, 0));
  // Index arithmetic that would overflow stays an expression; data integers wrap.
  EXPECT_FALSE(const_int(i32(2147483647) + i32(1)));
  EXPECT_EQ(*const_int(Expr(int_imm(DataType::uint(8), 255)) + int_imm(DataType::uint(8), 1)), 0);
  Expr half = Expr(var("h", DataType::float_(16))) * float_imm(DataType::float_(32), 0.5);
  EXPECT_EQ(half.dtype(), DataType::float_(16));
  EXPECT_EQ((ramp(x, i32(1), 4) + Expr(x)).dtype(), DataType::int_(32, 4));
  EXPECT_TRUE(is_true(logical_and(bool_imm(true), bool_imm(true))));
}

TEST(Build, RefusesUndefinedOperations) {
  Ref<Var> x = var("x");
  EXPECT_EQ(code_of([&] { div(x, i32(2)); }), "ir/integer-division");
  EXPECT_EQ(code_of([&] { floordiv(Expr(x), i32(0)); }), "ir/divide-by-zero");
  EXPECT_EQ(code_of([&] { call(Intrinsic::k_exp, {x}); }), "ir/intrinsic-dtype");
  EXPECT_EQ(code_of([&] { call(Intrinsic::k_pow, {float_imm(DataType::float_(32), 1)}); }), "ir/intrinsic-arity");
}

TEST(Traverse, UnchangedSubtreesKeepTheirPointer) {
  Ref<PrimFunc> func = add_func(8, 1.0);
  EXPECT_EQ(rewrite(func, [](const Ref<Var>& v, Rewriter&) -> Expr { return v; }), func);
  Expr changed = rewrite(Expr(Expr(var("x")) + 1), [](const Ref<IntImm>&, Rewriter&) -> Expr { return i32(2); });
  EXPECT_TRUE(is_const_int(changed.as<Add>()->b, 2));
}

TEST(Traverse, FindsNodesByKindAndPredicate) {
  Stmt body = add_loop(decl_buffer({i32(4)}, DataType::float_(32), "A"), 4, 1);
  EXPECT_TRUE((has_node<While, BufferLoad>(body)));
  EXPECT_FALSE((has_node<While, Block>(body)));
  auto has_extent = [&](int64_t extent) {
    return any_node(body, [&](const Ref<For>& loop) { return is_const_int(loop->extent, extent); });
  };
  EXPECT_TRUE(has_extent(4));
  EXPECT_FALSE(has_extent(5));
}

TEST(Traverse, OneFunctionIsForNodesOfSeveralKinds) {
  Ref<Var> x = var("x"), y = var("y");
  Expr e = make<Mul>({make<Add>({x, y}), make<Sub>({x, make<Min>({x, y})})});
  std::vector<Kind> seen;
  auto note = [&](const auto& node) { seen.push_back(node.kind()); };
  visit(e, on<Add, Sub, Min>(note));  // operands are visited behind their operator
  EXPECT_EQ(seen, (std::vector<Kind>{Kind::kAdd, Kind::kSub, Kind::kMin}));
  seen.clear();
  visit(e, on<Add, Sub>([&](const auto& node, Visitor&) { note(node); }), on<Min, Max>(note));
  EXPECT_EQ(seen, (std::vector<Kind>{Kind::kAdd, Kind::kSub}));  // the minimum is inside of the difference
  auto left = [](const auto& node, Rewriter& r) -> Expr { return r(node->a); };
  EXPECT_EQ(rewrite(e, on<Add, Sub, Mul>(left)), x);
  auto has_right = [&](const Expr& b) {
    return any_node(e, on<Min, Add>([&](const auto& node) { return node->b == b; }));
  };
  EXPECT_TRUE(has_right(y));
  EXPECT_FALSE(has_right(x));
}

TEST(Build, OperatorsByKind) {
  Ref<Var> x = var("x");
  EXPECT_TRUE(is_const_int(binary(Kind::kFloorMod, i32(-7), i32(4)), 1));
  EXPECT_TRUE(is_false(binary(Kind::kOr, bool_imm(false), bool_imm(false))));
  EXPECT_TRUE(is_true(ge(i32(3), 3)));
  EXPECT_TRUE(is_false(lt(i64(3), 3)));
  EXPECT_TRUE(structural_equal(ne(x, 0), make<NE>({x, i32(0)})));
  EXPECT_TRUE(structural_equal(make_binary(Kind::kFloorDiv, x, i32(0)), make<FloorDiv>({x, i32(0)})));
}

TEST(Make, NodesWithOneOtherField) {
  Ref<For> loop = add_loop(decl_buffer({i32(4)}, DataType::float_(32), "A"), 4, 1).borrow<For>();
  Ref<For> vectorized = with_field(loop, &For::kind, ForKind::kVectorized);
  EXPECT_EQ(vectorized->kind, ForKind::kVectorized);
  EXPECT_EQ(vectorized->body, loop->body);
  EXPECT_EQ(loop->kind, ForKind::kSerial);
  EXPECT_EQ(with_body(loop, loop->body), loop);
  EXPECT_EQ(with_body(loop, nop())->extent, loop->extent);
}

TEST(Traverse, BuffersAreReplacedConsistently) {
  Ref<Var> n = var("n");
  Ref<Buffer> a = decl_buffer({n}, DataType::float_(32), "A");
  Stmt s = seq({store(a, load(a, {i32(0)}), {i32(1)}), store(a, load(a, {i32(2)}), {i32(3)})});
  Stmt after = substitute(s, {{n, i32(16)}});
  std::vector<Ref<Buffer>> seen;
  visit(after, [&](const Ref<Buffer>& b) { seen.push_back(b); });
  ASSERT_EQ(seen.size(), 4u);
  for (const Ref<Buffer>& b : seen) EXPECT_EQ(b, seen[0]);
  EXPECT_NE(seen[0], a);
  EXPECT_TRUE(is_const_int(seen[0]->shape[0], 16));
}

TEST(Traverse, ReplacementsThatDoNotFitAreErrors) {
  Ref<PrimFunc> func = add_func(8, 1.0);
  const Ref<Buffer> other = decl_buffer({i32(8)}, DataType::float_(32), "B");
  auto any_load = [](const Ref<BufferLoad>&, Rewriter&) -> NodeRef { return make<Evaluate>({i32(0)}); };
  EXPECT_EQ(code_of([&] { rewrite(func, any_load); }), "ir/replacement");  // a statement for an expression
  auto any_buffer = [](const Ref<Buffer>&, Rewriter&) -> NodeRef { return i32(0); };
  EXPECT_EQ(code_of([&] { rewrite(func->body, any_buffer); }), "ir/replacement");
  auto typed = [&](const Ref<BufferStore>& s, Rewriter& r) -> Stmt {
    return make<BufferStore>({r.typed(s->buffer), s->value, s->indices, {}});
  };
  EXPECT_EQ(code_of([&] { rewrite(func->body, typed, any_buffer); }), "ir/replacement");
  // A binding stays a binding where its uses get a value.
  Stmt body = rewrite(
      func->body, [](const Ref<Var>& v, Rewriter&) -> Expr { return v->name_hint == "i" ? Expr(i32(3)) : Expr(v); });
  ASSERT_TRUE(body.is<For>());
  EXPECT_EQ(body.as<For>()->loop_var->name_hint, "i");
  EXPECT_TRUE(is_const_int(body.as<For>()->body.as<BufferStore>()->indices[0], 3));
}

TEST(Traverse, DepthTenThousandIsSafe) {
  Expr e = var("x");
  Ref<Var> y = var("y");
  for (int i = 0; i < 10000; ++i) e = make<Add>({e, y});
  int adds = 0;
  visit(e, [&](const Ref<Add>&) { ++adds; });
  EXPECT_EQ(adds, 10000);
  EXPECT_TRUE(structural_equal(e, e));
  Result<NodeRef> back = from_json(to_json(e));
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(structural_equal(e, *back, true));
  EXPECT_EQ(structural_hash(e), structural_hash(*back));
}

TEST(Node, LongChainsFreeWithoutRecursion) {
  // Deeper than make() allows is possible through shared constants only by lists of lists; a chain at the limit is
  // what destruction sees.
  for (int round = 0; round < 3; ++round) {
    Expr e = var("x");
    for (int i = 0; i < 16000; ++i) e = make<Not>({make<EQ>({e, e})}), e = make<Cast>({DataType::int_(32), e}), i += 2;
  }
  SUCCEED();
}

TEST(Structural, BoundVariablesMatchByPosition) {
  EXPECT_TRUE(structural_equal(add_func(8, 1.0, "i"), add_func(8, 1.0, "k")));
  EXPECT_EQ(structural_hash(add_func(8, 1.0, "i")), structural_hash(add_func(8, 1.0, "k")));
  EXPECT_FALSE(structural_equal(add_func(8, 1.0), add_func(9, 1.0)));
  EXPECT_FALSE(structural_equal(add_func(8, 0.0), add_func(8, -0.0)));
  EXPECT_NE(structural_hash(add_func(8, 0.5)), structural_hash(add_func(8, 0.25)));
  Ref<Var> x = var("x"), y = var("y");
  EXPECT_FALSE(structural_equal(x, y));
  EXPECT_TRUE(structural_equal(x, y, true));
  // x + x is not x + y even when free variables may be mapped.
  EXPECT_FALSE(structural_equal(make<Add>({x, x}), make<Add>({x, y}), true));
}

TEST(Structural, ViewsOfBoundMemoryMatchByTheirFirstUse) {
  auto program = [](int second) {
    Ref<Var> data = pointer_var("data", DataType::float_(32));
    std::vector<Stmt> stores;
    for (int extent : {8, second}) {
      Buffer view{data, DataType::float_(32), {i32(extent)}, {}, {}, i32(0), "view"};
      stores.push_back(store(make<Buffer>(view), float_imm(DataType::float_(32), 1), {i32(0)}));
    }
    return make<Allocate>({data, DataType::float_(32), {i32(8)}, bool_imm(true), make<SeqStmt>({stores}), {}});
  };
  EXPECT_TRUE(structural_equal(program(4), program(4)));
  EXPECT_EQ(structural_hash(program(4)), structural_hash(program(4)));
  EXPECT_FALSE(structural_equal(program(4), program(5)));
}

TEST(Structural, SaysWhereProgramsDiffer) {
  auto mismatch = find_mismatch(add_func(8, 1.0), add_func(9, 1.0));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->path, "<root>.buffer_map[0].shape[0].value");
  EXPECT_EQ(mismatch->lhs.kind(), Kind::kIntImm);
}

TEST(Substitute, RenewedProgramsShareNothingTheyDefine) {
  Ref<PrimFunc> func = add_func(8, 1.0);
  Ref<PrimFunc> copy = renew_defs(func);
  EXPECT_TRUE(structural_equal(func, copy));
  EXPECT_NE(func->params[0], copy->params[0]);
  EXPECT_NE(func->buffer_map[0].second, copy->buffer_map[0].second);
  EXPECT_NE(func->body.as<For>()->loop_var, copy->body.as<For>()->loop_var);
}

TEST(Substitute, FreeVariables) {
  Ref<Buffer> a = decl_buffer({i32(8)}, DataType::float_(32), "A");
  std::vector<Ref<Var>> free;
  for_each_free_var(add_loop(a, 8, 1.0), [&](const Ref<Var>& v) { free.push_back(v); });
  ASSERT_FALSE(free.empty());
  for (const Ref<Var>& v : free) EXPECT_EQ(v, a->data);
}

TEST(Json, RoundTrip) {
  Ref<PrimFunc> func = add_func(8, 1.5);
  Result<NodeRef> back = from_json(to_json(func));
  ASSERT_TRUE(back.ok()) << back.error().render();
  EXPECT_TRUE(structural_equal(func, *back));
  Expr nan = float_imm(DataType::float_(64), std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(structural_equal(nan, *from_json(to_json(nan))));
}

TEST(Compact, RoundTrip) {
  Ref<PrimFunc> func = add_func(8, 1.5);
  Result<NodeRef> back = from_compact(to_compact(func));
  ASSERT_TRUE(back.ok()) << back.error().render();
  EXPECT_TRUE(structural_equal(func, *back));
  EXPECT_EQ(to_json(func), to_json(*back));
  EXPECT_LT(to_compact(func).size(), to_json(func).size() / 4);
  for (double value : {std::numeric_limits<double>::quiet_NaN(), -0.0, 1e300}) {
    Expr constant = float_imm(DataType::float_(64), value);
    EXPECT_TRUE(structural_equal(constant, *from_compact(to_compact(constant))));
  }
  for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{63}, int64_t{64}, INT64_MAX}) {
    Expr constant = int_imm(DataType::int_(64), value);
    EXPECT_EQ(const_int(Expr(*from_compact(to_compact(constant)))), value);
  }
  Ref<Var> y = var("y");
  Expr deep = var("x");
  for (int i = 0; i < 10000; ++i) deep = make<Add>({deep, y});
  EXPECT_TRUE(structural_equal(deep, *from_compact(to_compact(deep)), true));
}

TEST(Compact, RefusesWhatItHasNotWritten) {
  const std::string bytes = to_compact(add_func(8, 1.5));
  EXPECT_EQ(from_compact(to_json(add_func(8, 1.5))).error().code, "ir/compact");
  EXPECT_EQ(from_compact(bytes + "x").error().code, "ir/compact");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(from_compact(bytes.substr(0, size)).error().code, "ir/compact") << size;
  }
  // Whatever a byte is changed to: a program or an error.
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int other : {0, 1, 127, 128, 255}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(other);
      refused += !from_compact(changed).ok();
    }
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()));
}

TEST(Json, RefusesForeignText) {
  EXPECT_EQ(from_json("{").error().code, "json/syntax");
  EXPECT_EQ(from_json("{}").error().code, "json/content");
  EXPECT_EQ(from_json(R"({"tilewright": 2, "root": 5, "nodes": []})").error().code, "json/content");
  EXPECT_EQ(from_json(R"({"tilewright": 2, "root": 0, "nodes": [{"class": "Add", "a": 0, "b": 0}]})").error().code,
            "json/content");
  std::string text = to_json(add_func(8, 1.0));
  for (size_t cut = 0; cut < text.size(); cut += 7) EXPECT_FALSE(from_json(text.substr(0, cut)).ok());
  EXPECT_EQ(decode_base64("a*b").error().code, "json/base64");
  EXPECT_EQ(*decode_base64(encode_base64(std::string("\0\1\2\xff", 4))), std::string("\0\1\2\xff", 4));
}

}  // namespace
}  // namespace tilewright
