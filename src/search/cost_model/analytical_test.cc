#include "search/cost_model/analytical.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::search {
namespace {

/// for i, j: B[i, j] = A[i, j] + 1, with i or j as the inner loop
Ref<Module> increment(int64_t n, bool by_rows, ForKind outer = ForKind::kSerial) {
  DataType f32 = DataType::float_(32);
  Ref<Buffer> a = decl_buffer({i32(n), i32(n)}, f32, "A"), b = decl_buffer({i32(n), i32(n)}, f32, "B");
  Ref<Var> i = var("i"), j = var("j");
  Stmt body = store(b, load(a, {i, j}) + float_imm(f32, 1), {i, j});
  body = by_rows ? loop(i, i32(n), loop(j, i32(n), body), outer) : loop(j, i32(n), loop(i, i32(n), body), outer);
  PrimFunc func{{}, {}, make<TupleType>({{}}), {}, body};
  for (const Ref<Buffer>& buffer : {a, b}) {
    Ref<Var> handle = pointer_var(buffer->name, DataType::void_(), "");
    func.params.push_back(handle);
    func.buffer_map.push_back({handle, buffer});
  }
  return as_module(make<PrimFunc>(func));
}

Target target(int cores) {
  return Target::parse("llvm -mcpu=znver4 -num-cores=" + std::to_string(cores)).value_or_throw();
}

TEST(AnalyticalModel, RowsAreFasterThanColumns) {
  for (int64_t n : {64, 256, 1024}) {
    double rows = estimate_cost(increment(n, true), target(1)).seconds;
    EXPECT_GT(rows, 0);
    EXPECT_LT(2 * rows, estimate_cost(increment(n, false), target(1)).seconds) << n;
  }
}

TEST(AnalyticalModel, ThreadsShareWhatIsParallel) {
  Ref<Module> module = increment(1024, true, ForKind::kParallel);
  CostEstimate one = estimate_cost(module, target(1)), four = estimate_cost(module, target(4));
  EXPECT_EQ(four.parallel_chunks, 1024);
  EXPECT_DOUBLE_EQ(four.compute * 4, one.compute);
  EXPECT_LT(four.seconds, one.seconds);
}

/// for f in range(n * n): for j: B[f // n, f % n, j] = A[...] + 1, or the same with two loops
Ref<Module> increment_of_rows(int64_t n, bool fused) {
  DataType f32 = DataType::float_(32);
  Ref<Buffer> a = decl_buffer({i32(n), i32(n), i32(64)}, f32, "A"),
              b = decl_buffer({i32(n), i32(n), i32(64)}, f32, "B");
  Ref<Var> i = var("i"), j = var("j"), f = var("f"), k = var("k");
  std::vector<Expr> index = {i, j, k};
  if (fused) index = {floordiv(f, i32(n)), floormod(f, i32(n)), k};
  Stmt body = loop(k, i32(64), store(b, load(a, index) + float_imm(f32, 1), index));
  body = fused ? loop(f, i32(n * n), body) : loop(i, i32(n), loop(j, i32(n), body));
  PrimFunc func{{}, {}, make<TupleType>({{}}), {}, body};
  for (const Ref<Buffer>& buffer : {a, b}) {
    Ref<Var> handle = pointer_var(buffer->name, DataType::void_(), "");
    func.params.push_back(handle);
    func.buffer_map.push_back({handle, buffer});
  }
  return as_module(make<PrimFunc>(func));
}

TEST(AnalyticalModel, DivisionsOfOuterLoopsAreMadeOnce) {
  double plain = estimate_cost(increment_of_rows(20, false), target(1)).compute;
  EXPECT_NEAR(estimate_cost(increment_of_rows(20, true), target(1)).compute, plain, 0.1 * plain);
}

TEST(AnalyticalModel, ScoresAreCallsASecond) {
  TuneContext context;
  context.target = target(1);
  MeasureCandidates candidates;
  for (bool by_rows : {true, false}) candidates.push_back({*schedule::Schedule::make(increment(256, by_rows)), {}});
  std::vector<double> scores = *AnalyticalModel().predict(context, candidates);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_GT(scores[0], scores[1]);
  EXPECT_NEAR(scores[0] * estimate_cost(increment(256, true), target(1)).seconds, 1, 1e-3);
}

}  // namespace
}  // namespace tilewright::search
