#include "analysis/verify_accesses.h"

#include <gtest/gtest.h>

#include "analysis/witness.h"
#include "ir/build.h"
#include "ir/verify_sample.h"
#include "support/diagnostic.h"

namespace tilewright::analysis {
namespace {

using namespace sample;

std::string code_of(const NodeRef& node) {
  Status status = verify_accesses(node);
  return status.ok() ? "" : status.error().code;
}

TEST(VerifyAccesses, RegionsCoverTheAccesses) {
  Sample s;
  Expr v = s.axis->var;
  s.block.reads = {};
  EXPECT_EQ(code_of(s.nest()), "verify/reads");
  s.block.reads = {region(s.a, v, i32(1))};
  s.block.writes = {};
  EXPECT_EQ(code_of(s.nest()), "verify/writes");
  s.block.writes = {region(s.b, v + 1, i32(2))};
  EXPECT_EQ(code_of(s.nest()), "verify/writes");
  s.block.writes = {region(s.b, v - 1, i32(2))};
  EXPECT_EQ(code_of(s.nest()), "");
  // Loops inside the block: 4 * vi + x stays below 4 * vi + 4 for x in [0, 4), not for x in [0, 5).
  Ref<Buffer> wide = buffer("B", {i32(64)});
  for (int extent : {4, 5}) {
    Sample t;
    t.b = wide;
    Expr base = Expr(t.axis->var) * 4;
    Ref<Var> x = var("x");
    t.block.writes = {region(wide, base, i32(4))};
    t.block.body = loop(x, i32(extent), store(wide, load(t.a, {t.axis->var}), {base + x}));
    EXPECT_EQ(code_of(t.nest()), extent == 4 ? "" : "verify/writes");
    t.block.body = make<IfThenElse>({lt(t.axis->var, i32(3)), t.block.body, {}});
    EXPECT_EQ(code_of(t.nest()), extent == 4 ? "" : "verify/writes");
    // Under a condition on data it cannot be decided, and is accepted.
    t.block.body = make<IfThenElse>({lt(load(t.a, {t.axis->var}), number(0)), t.block.body, {}});
    EXPECT_EQ(code_of(t.nest()), "");
  }
  // A reduction reads what it writes; memory of the block itself needs no region.
  Sample r;
  Ref<Buffer> local = buffer("local");
  r.block.alloc_buffers = {local};
  Expr w = r.axis->var;
  r.block.body = seq({store(local, number(0), {i32(0)}), store(r.b, load(r.b, {w}) + load(local, {i32(0)}), {w})});
  EXPECT_EQ(code_of(r.nest()), "");
}

/// The value of i at which `goal` is positive.
std::optional<int64_t> found(const Stmt& body, const Ref<Var>& i, const Expr& goal) {
  std::optional<int64_t> value;
  for_each_access(body, Nested::kEnter, [&](const Access& access) {
    auto point =
        find_iteration(access.around, {goal}, [&](const Point& p) { return evaluate(goal, p).value_or(0) > 0; });
    if (point) value = point->get(i);
  });
  return value;
}

TEST(Witness, FindsIterationsThatRun) {
  Ref<Var> i = var("i"), j = var("j"), n = var("n");
  Ref<Buffer> b = buffer("B");
  Stmt write = store(b, number(0), {i});
  EXPECT_EQ(found(loop(i, i32(1000000), write), i, i - 999998), 999999);
  EXPECT_EQ(found(loop(i, i32(8), write), i, i - 7), std::nullopt);
  EXPECT_EQ(found(loop(i, n, write), i, i), std::nullopt);  // n may be 0
  auto guarded = [&](const Expr& condition) {
    return loop(i, i32(4), loop(j, i32(32), make<IfThenElse>({condition, write, {}})));
  };
  // The one iteration at the edge of a tile that sticks out.
  EXPECT_EQ(found(guarded(lt(i * 32 + j, i32(100))), i, i * 32 + j - 98), 3);
  EXPECT_EQ(found(guarded(lt(i * 32 + j, i32(100))), i, i * 32 + j - 99), std::nullopt);
  EXPECT_EQ(found(guarded(lt(load(b, {i}), number(0))), i, i), 3);  // the load is not guarded
  EXPECT_EQ(found(make<While>({bool_imm(true), loop(i, i32(4), write)}), i, i), std::nullopt);
  // One iteration of few, which no goal leads to; none behind a loop that is empty there.
  Expr one = logical_and(eq(floormod(i * 7, i32(11)), i32(5)), eq(j, i32(6)));
  EXPECT_EQ(found(loop(i, i32(11), loop(j, i32(13), make<IfThenElse>({one, write, {}}))), i, i32(1)), 7);
  EXPECT_EQ(found(loop(i, i32(11), loop(j, i - 9, write)), i, i - 10), std::nullopt);
  EXPECT_EQ(found(loop(i, i32(11), loop(j, i - 9, write)), i, i - 9), 10);
}

TEST(Witness, EvaluatesIntegersWithinTheirTypes) {
  Ref<Var> x = var("x");
  Point point;
  point.set(x, -7);
  EXPECT_EQ(evaluate(floordiv(x, i32(2)), point), -4);
  EXPECT_EQ(evaluate(floormod(x, i32(4)), point), 1);
  EXPECT_EQ(evaluate(truncdiv(x, i32(2)), point), -3);
  EXPECT_EQ(evaluate(truncmod(x, i32(4)), point), -3);
  EXPECT_EQ(evaluate(floordiv(i32(1), x + 7), point), std::nullopt);
  EXPECT_EQ(evaluate(x * i32(1 << 30), point), std::nullopt);
  EXPECT_EQ(evaluate(logical_and(lt(x, i32(0)), gt(x, var("y"))), point), std::nullopt);
  EXPECT_EQ(evaluate(logical_and(gt(x, i32(0)), gt(x, var("y"))), point), 0);
  EXPECT_EQ(evaluate(if_then_else(lt(x, i32(0)), min(x, i32(3)), max(x, i32(3))), point), -7);
}

}  // namespace
}  // namespace tilewright::analysis
