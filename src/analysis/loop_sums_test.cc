#include "analysis/loop_sums.h"

#include <gtest/gtest.h>

#include <random>

#include "arith/test_evaluator.h"
#include "ir/build.h"

namespace tilewright::analysis {
namespace {

class LoopSumsTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), j = var("j"), k = var("k");
  std::array<int64_t, 3> extents{6, 4, 5};
  LoopSums sums;
  std::array<uint32_t, 3> atoms{};

  void SetUp() override {
    std::array<Ref<Var>, 3> vars{i, j, k};
    for (int depth = 0; depth < 3; ++depth) {
      atoms[depth] = sums.add_loop(depth, LoopSums::constant(0), extents[depth]);
      sums.bind(vars[depth], LoopSums::of_atom(atoms[depth]));
    }
  }
  /// Calls with the values of all variables.
  template <class F>
  void for_all_points(F&& f) {
    for (int64_t a = 0; a < extents[0]; ++a) {
      for (int64_t b = 0; b < extents[1]; ++b) {
        for (int64_t c = 0; c < extents[2]; ++c) f(arith::Env{{i, a}, {j, b}, {k, c}});
      }
    }
  }
  Expr random_index(std::mt19937& random, int depth) {
    auto sample = [&](int n) { return static_cast<int>(random() % n); };
    if (depth == 0 || sample(4) == 0) {
      int which = sample(4);
      return which == 3 ? Expr(i32(sample(9) - 2)) : Expr(which == 0 ? i : which == 1 ? j : k);
    }
    Expr a = random_index(random, depth - 1);
    switch (sample(7)) {
      case 0:
        return a + random_index(random, depth - 1);
      case 1:
        return a - random_index(random, depth - 1);
      case 2:
        return a * i32(sample(7) - 1);
      case 3:
        return floordiv(a, i32(1 + sample(8)));
      case 4:
        return floormod(a, i32(1 + sample(8)));
      case 5:
        return min(a, random_index(random, depth - 1));
      default:
        return max(a, random_index(random, depth - 1));
    }
  }
};

TEST_F(LoopSumsTest, SplitAndFusedIndices) {
  LoopSum tile = sums.read(i * 4 + j);
  EXPECT_EQ(sums.read(floordiv(i * 4 + j, 4)), LoopSums::of_atom(atoms[0]));
  EXPECT_EQ(sums.read(floormod(i * 4 + j, 4)), LoopSums::of_atom(atoms[1]));
  EXPECT_EQ(sums.read(floordiv(k * 7 + i, 3) * 3 + floormod(k * 7 + i, 3)), sums.read(k * 7 + i));
  EXPECT_EQ(sums.read(floordiv(floordiv(k, 2), 2)), sums.read(floordiv(k, 4)));
  EXPECT_EQ(sums.bounds(tile, kAllLevels).hi, 23);
  EXPECT_EQ(sums.bounds(tile, levels_from(1)).hi, 3);
  EXPECT_EQ(sums.step_of(tile, atoms[0]), 4);
  EXPECT_EQ(sums.step_of(tile, atoms[2]), 0);
  EXPECT_EQ(sums.levels(tile), level_bit(0) | level_bit(1));
  EXPECT_TRUE(sums.is_even(tile, atoms[0]));
  EXPECT_FALSE(sums.is_even(sums.read(floordiv(i, 4) + j), atoms[0]));
}

TEST_F(LoopSumsTest, LimitsOfAnAxisHoldWhereItsLoopsReachFurther) {
  const Ref<Var> axis = var("axis");
  sums.bind(axis, sums.read(i * 4 + j));  // to 23
  sums.limit(axis, 18);                   // by a predicate
  EXPECT_EQ(sums.read(floordiv(axis, 18) * 5 + k), sums.read(k));
  EXPECT_EQ(sums.read(floormod(axis, 20)), sums.read(i * 4 + j));
  EXPECT_FALSE(sums.read(floordiv(axis, 17)) == LoopSums::constant(0));
}

TEST_F(LoopSumsTest, DimensionsThatOneNumberIsTakenApartIntoAreThatNumber) {
  const Expr x = i * 9 + j * 2;
  const LoopSum whole = sums.read(x);
  EXPECT_TRUE(sums.read(floordiv(x, i32(4)) * 4 + floormod(x, i32(4))) == whole);
  EXPECT_TRUE(sums.read(floordiv(x, i32(12)) * 12 + floordiv(floormod(x, i32(12)), i32(4)) * 4 + floormod(x, i32(4))) ==
              whole);
  EXPECT_TRUE(sums.read(floordiv(x, i32(12)) * 12 + floormod(floordiv(x, i32(4)), i32(3)) * 4 + floormod(x, i32(4))) ==
              whole);
  EXPECT_FALSE(sums.read(floordiv(x, i32(12)) * 12 + floormod(x, i32(4))) == whole);
}

TEST_F(LoopSumsTest, WorkIsThatOfTheSum) {
  IndexWork work = sums.work(sums.read((i * 2 + j) * 2 + 3 - j * 2));  // 4 i + 3
  EXPECT_EQ(work.mul, 1);
  EXPECT_EQ(work.add, 1);
  EXPECT_EQ(sums.work(sums.read(floormod(k * 3 + i, 7))).div, 1);
}

TEST_F(LoopSumsTest, PartsAreTheSum) {
  auto parts = sums.part(sums.read(i * 8 + j * 3 + k + 5), levels_from(1));
  ASSERT_TRUE(parts);
  EXPECT_EQ(sums.add(parts->outer, parts->inner, 1), sums.read(i * 8 + j * 3 + k + 5));
  EXPECT_EQ(sums.levels(parts->outer), level_bit(0));
  EXPECT_FALSE(sums.part(sums.read(floordiv(i * 3 + j, 5)), levels_from(1)));
}

TEST_F(LoopSumsTest, BoundsHoldAllValues) {
  std::mt19937 random(5);
  int exact = 0, tried = 0;
  for (int round = 0; round < 3000; ++round) {
    Expr e = random_index(random, 3);
    LoopSum sum = sums.read(e);
    Span64 bounds = sums.bounds(sum, kAllLevels), start = sums.bounds(sum, 0), inner = sums.bounds(sum, levels_from(2));
    int64_t lo = Span64::kFar, hi = -Span64::kFar;
    for_all_points([&](const arith::Env& env) {
      auto value = arith::evaluate(e, env);
      if (!value) return;
      lo = std::min(lo, *value);
      hi = std::max(hi, *value);
      if (env.at(i) != 0 || env.at(j) != 0) return;
      EXPECT_GE(*value, inner.lo);
      EXPECT_LE(*value, inner.hi);
      EXPECT_TRUE(env.at(k) != 0 || (start.lo == *value && start.hi == *value));
    });
    EXPECT_LE(bounds.lo, lo);
    EXPECT_GE(bounds.hi, hi);
    exact += bounds.lo == lo && bounds.hi == hi;
    ++tried;
  }
  EXPECT_GT(exact, tried * 3 / 4);  // else they would say little
}

TEST_F(LoopSumsTest, DecisionsAreTrue) {
  std::mt19937 random(6);
  int decided = 0;
  for (int round = 0; round < 2000; ++round) {
    Expr a = random_index(random, 2), b = random_index(random, 2);
    for (const Expr& condition : {lt(a, b), le(a, b), eq(a, b), ne(a, b), logical_and(gt(a, b), ge(b, i))}) {
      auto answer = sums.decide(condition);
      if (!answer) continue;
      ++decided;
      for_all_points([&](const arith::Env& env) {
        auto value = arith::evaluate(condition, env);
        EXPECT_TRUE(!value || (*value != 0) == *answer);
      });
    }
  }
  EXPECT_GT(decided, 500);
}

TEST_F(LoopSumsTest, WhatDoesNotFitIsKnownByItsLoops) {
  Expr e = i32(0);
  for (int n = 2; n < 20; ++n) e = e + floordiv(i * 3 + k, i32(n));
  EXPECT_EQ(sums.levels(sums.read(e)), level_bit(0) | level_bit(2));
  Ref<Buffer> table = decl_buffer({i32(8)}, DataType::int_(32), "table");
  EXPECT_EQ(sums.levels(sums.read(load(table, {j}) * 2)), level_bit(1));
  EXPECT_FALSE(sums.bounds(sums.read(load(table, {j})), kAllLevels).is_known());
}

}  // namespace
}  // namespace tilewright::analysis
