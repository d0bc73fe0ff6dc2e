#include "arith/digits.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "arith/test_evaluator.h"
#include "ir/build.h"
#include "ir/substitute.h"

namespace tilewright::arith {
namespace {

class DigitsTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), j = var("j"), k = var("k");
  Ref<Var> n = var("n");
  IterDomains inputs{{i, range_of(i32(8))}, {j, range_of(i32(4))}, {k, range_of(i32(6))}};

  /// Calls f with the values of `exprs`, n = 7, for all values of the inputs.
  template <class F>
  void for_all(const std::vector<Expr>& exprs, const F& f) {
    for (int64_t at = 0; at < 8 * 4 * 6; ++at) {
      Env env{{i, at / 24}, {j, at / 6 % 4}, {k, at % 6}, {n, 7}};
      std::vector<int64_t> values;
      for (const Expr& e : exprs) values.push_back(*evaluate(e, env));
      f(values);
    }
  }
};

TEST_F(DigitsTest, SplitsAndFusionsAreOneToOne) {
  EXPECT_TRUE(plainly_one_to_one({i * 4 + j, k}, inputs));
  EXPECT_TRUE(plainly_one_to_one({floordiv(i * 4 + j, i32(8)), floormod(i * 4 + j, i32(8)), k}, inputs));
  EXPECT_TRUE(plainly_one_to_one({floordiv(k, i32(2)) * 8 + i, j, floormod(k, i32(2))}, inputs));
  EXPECT_FALSE(plainly_one_to_one({i * 4 + j}, inputs)) << "k takes no part";
  EXPECT_FALSE(plainly_one_to_one({i * 3 + j, k}, inputs));
  EXPECT_FALSE(plainly_one_to_one({i * 5 + j, k}, inputs)) << "not contiguous";
  EXPECT_FALSE(plainly_one_to_one({i, i, j, k}, inputs));
}

TEST_F(DigitsTest, WhatTellsIterationsApart) {
  Counters counters = *counters_of(inputs);
  EXPECT_EQ(injectivity_of({i * 4 + j, k}, counters), Injectivity::kYes);
  EXPECT_EQ(injectivity_of({i, j}, counters), Injectivity::kNo);
  EXPECT_EQ(injectivity_of({floordiv(i, i32(2)), j, k}, counters), Injectivity::kNo);
  EXPECT_EQ(injectivity_of({floormod(i, i32(2)), j, k}, counters), Injectivity::kNo);
  EXPECT_EQ(injectivity_of({i * 5 + j, k}, counters), Injectivity::kUnknown);
  EXPECT_EQ(injectivity_of({i * n, j, k}, counters), Injectivity::kUnknown);
}

TEST_F(DigitsTest, Boxes) {
  auto box = plain_box({make<Range>({n * 2 + i * 4, i32(4)}), range(j, i32(1))}, inputs);
  ASSERT_TRUE(box);
  EXPECT_EQ(evaluate((*box)[0].min, {{n, 7}}), 14);
  EXPECT_EQ(evaluate((*box)[0].max, {{n, 7}}), 14 + 31);
  EXPECT_FALSE(plain_box({range(i * 4, i32(3))}, inputs)) << "not contiguous";
  EXPECT_FALSE(plain_box({range(i, i32(1)), range(i, i32(1))}, inputs)) << "a diagonal";
}

TEST_F(DigitsTest, HullsHoldAllAndNoMore) {
  Counters counters = *counters_of(inputs);
  for (const Expr& e : {Expr(i) + j, Expr(i) * 3 - j, Expr(n) + k * 5, floordiv(Expr(i), i32(2)) + j, Expr(k)}) {
    auto hull = plain_hull({range(e, i32(2))}, counters);
    ASSERT_TRUE(hull);
    int64_t low = INT64_MAX, high = INT64_MIN;
    for_all({e}, [&](const std::vector<int64_t>& values) {
      low = std::min(low, values[0]);
      high = std::max(high, values[0] + 1);
    });
    EXPECT_EQ(evaluate((*hull)[0].min, {{n, 7}}), low);
    EXPECT_EQ(evaluate((*hull)[0].max, {{n, 7}}), high);
  }
  EXPECT_FALSE(plain_hull({range(Expr(i) * n, i32(1))}, counters));
  EXPECT_FALSE(counters_of({{i, range(i32(1), i32(8))}}));
  EXPECT_FALSE(counters_of({{i, range_of(n)}}));
}

TEST_F(DigitsTest, ReachesOfBoundAxes) {
  Counters counters = *counters_of(inputs);
  Ref<Var> v = var("v"), w = var("w");
  std::vector<Ref<IterVar>> axes;
  for (const Ref<Var>& each : {v, w}) axes.push_back(make<IterVar>({range_of(i32(64)), each, IterType::kDataPar, ""}));
  std::vector<Expr> values = {Expr(n) * 8 + i, floormod(Expr(n), i32(4)) + j};
  Bindings bindings{axes, values};
  auto hull = [&](const Expr& e) { return *plain_reach({range(e, i32(2))}, bindings, counters); };
  for (const Expr& e : {Expr(v) + 1, Expr(w) * 2 - v, Expr(v) + w, floordiv(Expr(w), i32(4)), Expr(k) - v}) {
    auto reach = plain_reach({range(e, i32(2))}, bindings, counters);
    if (!reach) continue;
    int64_t base = 0;
    for (const auto& [value, scale] : (*reach)[0].fixed) base += scale * *evaluate(value, {{n, 7}});
    Expr bound = substitute(e, {{v, values[0]}, {w, values[1]}});
    for_all({bound}, [&](const std::vector<int64_t>& at) {
      EXPECT_LE(base + (*reach)[0].first, at[0]);
      EXPECT_GE(base + (*reach)[0].last, at[0] + 1);
    });
  }
  Counters none, around{{n.get(), 3}};
  EXPECT_TRUE(is_inside(hull(v), hull(Expr(v)), none));
  EXPECT_FALSE(is_inside(hull(Expr(v) + 1), hull(v), none));
  EXPECT_FALSE(is_inside(hull(v), hull(w), none)) << "other terms";
  EXPECT_FALSE(is_inside(hull(i), hull(v), around)) << "terms of the outer side only";
  std::vector<Reach> wide{{{}, 0, 24}};
  EXPECT_FALSE(is_inside(hull(v), wide, none));
  EXPECT_TRUE(is_inside(hull(v), wide, around)) << "0 to 2 * 8 + 7 + 1";
  EXPECT_FALSE(is_inside(hull(v), {{{}, 0, 23}}, around));
  EXPECT_TRUE(plain_cover({range(v, i32(1))}, {j}, bindings, counters));
  EXPECT_FALSE(plain_cover({range(v, i32(1))}, {i}, bindings, counters)) << "a diagonal";
  EXPECT_FALSE(plain_cover({range(Expr(v) * 2, i32(1))}, {}, bindings, counters)) << "not contiguous";
}

TEST_F(DigitsTest, RandomExpressionsAgreeWithEnumeration) {
  std::mt19937 random(1);
  auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  const Expr leaves[] = {i, j, k};
  const int64_t numbers[] = {1, 2, 3, 4, 6, 8, 12};
  auto sample = [&](auto&& self, int depth) -> Expr {
    Expr number = i32(numbers[below(7)]);
    if (depth == 0) return below(6) == 0 ? number : below(8) == 0 ? Expr(n) : leaves[below(3)];
    switch (below(6)) {
      case 0:
        return self(self, depth - 1) * number;
      case 1:
        return floordiv(self(self, depth - 1), number);
      case 2:
        return floormod(self(self, depth - 1), number);
      case 3:
        return self(self, depth - 1) - self(self, depth - 1);
      default:
        return self(self, depth - 1) * number + self(self, depth - 1);
    }
  };
  int maps = 0, boxes = 0;
  for (int round = 0; round < 30000; ++round) {
    std::vector<Expr> exprs;
    for (int d = 1 + below(3); d > 0; --d) exprs.push_back(sample(sample, below(3)));
    if (plainly_one_to_one(exprs, inputs)) {
      ++maps;
      std::set<std::vector<int64_t>> seen;
      for_all(exprs, [&](const std::vector<int64_t>& values) { EXPECT_TRUE(seen.insert(values).second); });
      int64_t span = 1;
      for (size_t d = 0; d < exprs.size(); ++d) {
        std::set<int64_t> ends;
        for (const auto& values : seen) ends.insert(values[d]);
        span *= *ends.rbegin() - *ends.begin() + 1;
      }
      EXPECT_EQ(span, 8 * 4 * 6);
    }
    Region region;
    const int sizes = exprs.size() > 1 ? 4 : 7;  // the points of three long dimensions would take half a minute
    for (const Expr& e : exprs) region.push_back(make<Range>({e, i32(below(2) ? 1 : numbers[below(sizes)])}));
    if (auto box = plain_box(region, inputs)) {
      ++boxes;
      std::set<std::vector<int64_t>> touched;
      for_all(exprs, [&](std::vector<int64_t> start) {
        auto add = [&](auto&& self, size_t d, std::vector<int64_t>& point) -> void {
          if (d == region.size()) {
            touched.insert(point);
            return;
          }
          for (int64_t x = 0; x < region[d]->extent.as<IntImm>()->value; ++x) {
            point.push_back(start[d] + x);
            self(self, d + 1, point);
            point.pop_back();
          }
        };
        std::vector<int64_t> point;
        add(add, 0, point);
      });
      size_t span = 1;
      for (size_t d = 0; d < box->size(); ++d) {
        int64_t low = *evaluate((*box)[d].min, {{n, 7}}), high = *evaluate((*box)[d].max, {{n, 7}});
        span *= static_cast<size_t>(high - low + 1);
        for (const auto& point : touched) EXPECT_TRUE(low <= point[d] && point[d] <= high);
      }
      EXPECT_EQ(span, touched.size());
    }
  }
  EXPECT_GT(maps, 20);
  EXPECT_GT(boxes, 2000);
}

TEST_F(DigitsTest, NothingIsSaidNearTheEndsOfTypes) {
  Expr far = i32(2147483647);
  EXPECT_FALSE(plain_box({range(i + far, i32(1))}, inputs));
  EXPECT_FALSE(plain_box({range(i * 1073741824, i32(1))}, inputs));
  EXPECT_FALSE(plainly_one_to_one({cast(DataType::int_(8), i), j, k}, inputs));
}

}  // namespace
}  // namespace tilewright::arith
