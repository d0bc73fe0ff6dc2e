#include "codegen/index_analysis.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::codegen {
namespace {

Ref<For> loop_over(const Ref<Var>& v, int64_t extent) {
  return loop(v, int_imm(v.dtype(), extent), make<Evaluate>({i32(0)})).cast<For>();
}

TEST(IndexAnalysis, TermsOfOuterLoopsComeFirst) {
  Ref<Var> i = var("i"), j = var("j");
  Ref<Buffer> buffer = decl_buffer({i32(4096)}, DataType::float_(32), "A", "global");
  IndexAnalysis known;
  known.enter_loop();
  known.define(i, known.interval_of(*loop_over(i, 64)));
  known.enter_loop();
  known.define(j, known.interval_of(*loop_over(j, 16)));
  // Casts to wider integers are looked through, and what occurs twice is one term.
  Expr index = cast(DataType::int_(64), j * 4 + 3) * 2 + cast(DataType::int_(64), i * 64 - j);
  auto [terms, constant, may_wrap] = known.linear(*buffer, index);
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_TRUE(terms[0].value == i);
  EXPECT_EQ(terms[0].factor, 64);
  EXPECT_EQ(terms[0].depth, 1);
  EXPECT_TRUE(terms[1].value == j);
  EXPECT_EQ(terms[1].factor, 7);
  EXPECT_EQ(terms[1].depth, 2);
  EXPECT_EQ(constant, 6);
  EXPECT_FALSE(may_wrap);
  EXPECT_TRUE(known.linear(*buffer, i - i).terms.empty());
  // The index 4 * (k - n) is small, and 4 * k passes 64 bits.
  Ref<Var> k = var("k", DataType::int_(64));
  const int64_t n = std::numeric_limits<int64_t>::max() - 20;
  known.define(k, Interval{n, n + 20});
  const IndexAnalysis::Linear large = known.linear(*buffer, (k - int_imm(DataType::int_(64), n)) * 4);
  EXPECT_TRUE(large.may_wrap);
  EXPECT_EQ(large.constant, 84);  // -4 * n modulo 2^64
  EXPECT_EQ(known.alignment_of(*buffer, k - int_imm(DataType::int_(64), std::numeric_limits<int64_t>::min())), 4);
}

TEST(IndexAnalysis, Alignment) {
  Ref<Var> i = var("i");
  Ref<Buffer> buffer = decl_buffer({i32(4096)}, DataType::float_(32), "A", "global");
  IndexAnalysis known;
  EXPECT_EQ(known.alignment_of(*buffer, i * 16), 4);
  known.define_pointer(buffer->data, 64, true);
  EXPECT_EQ(known.alignment_of(*buffer, i * 16), 64);
  EXPECT_EQ(known.alignment_of(*buffer, i * 16 + 4), 16);
  EXPECT_EQ(known.alignment_of(*buffer, i * 6), 8);
  EXPECT_EQ(known.alignment_of(*buffer, i), 4);
  Ref<Var> view = var("view", DataType::handle());
  known.define(view, buffer->data);
  EXPECT_EQ(known.alignment_of(view), 64);
}

TEST(IndexAnalysis, Intervals) {
  Ref<Var> i = var("i"), n = var("n"), u = var("u", DataType::uint(8));
  IndexAnalysis known;
  known.define(i, Interval{0, 15});
  known.define(n);
  known.define(u);
  EXPECT_TRUE(known.is_nonnegative(floordiv(i * 4 + 3, 8)));
  EXPECT_FALSE(known.is_nonnegative(i - 1));
  EXPECT_FALSE(known.is_nonnegative(n));
  EXPECT_EQ(known.interval_of(u)->high, 255);
  EXPECT_EQ(known.interval_of(i * 3 + 1)->high, 46);
  EXPECT_FALSE(known.interval_of(n * 2));  // may leave its type
  EXPECT_FALSE(known.interval_of(var("other")));
  Ref<For> inner = loop(n, i, make<Evaluate>({i32(0)})).cast<For>();
  EXPECT_EQ(known.interval_of(*inner).high, 14);
}

TEST(IndexAnalysis, LayoutOfLanes) {
  Ref<Var> i = var("i");
  Ref<Buffer> scalars = decl_buffer({i32(4096)}, DataType::float_(32), "A", "global");
  Ref<Buffer> vectors = decl_buffer({i32(64)}, DataType::float_(32, 4), "V", "global");
  auto form = [&](const Ref<Buffer>& buffer, const Expr& index) { return lane_layout(*buffer, index).form; };
  EXPECT_EQ(form(scalars, i), LaneLayout::kContiguous);
  EXPECT_EQ(form(scalars, ramp(i, i32(1), 8)), LaneLayout::kContiguous);
  const LaneLayout reversed = lane_layout(*scalars, ramp(i, i32(-1), 8));
  EXPECT_EQ(reversed.form, LaneLayout::kReversed);
  EXPECT_EQ(form(scalars, broadcast(i, 8)), LaneLayout::kSame);
  EXPECT_EQ(form(vectors, broadcast(i, 8)), LaneLayout::kScattered);
  EXPECT_EQ(form(scalars, ramp(i, Expr(i), 8)), LaneLayout::kScattered);
  const LaneLayout strided = lane_layout(*scalars, ramp(i, i32(3), 8));
  EXPECT_EQ(strided.form, LaneLayout::kStrided);
  EXPECT_EQ(strided.stride, 3);
}

TEST(IndexAnalysis, WholeRegistersForSmallStrides) {
  const Target target = *Target::parse("llvm -mcpu=haswell");
  EXPECT_TRUE(loads_with_gaps_pay(target, DataType::float_(32), 8, 2));
  EXPECT_TRUE(loads_with_gaps_pay(target, DataType::float_(32), 32, 4));
  EXPECT_FALSE(loads_with_gaps_pay(target, DataType::float_(32), 8, 5));
  EXPECT_FALSE(loads_with_gaps_pay(target, DataType::float_(32), 6, 2));
  EXPECT_FALSE(loads_with_gaps_pay(target, DataType::float_(32), 8, -2));
}

}  // namespace
}  // namespace tilewright::codegen
