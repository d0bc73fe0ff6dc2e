#include "arith/region_bound.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/structural.h"

namespace tilewright::arith {
namespace {

class RegionBoundTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), j = var("j"), x = var("x");
  Ref<Var> n = size_var("n");
  Analyzer analyzer;
  IterDomains inputs{{i, range_of(i32(8))}, {j, range_of(i32(4))}};

  std::optional<Box> lower(const Region& region, const Expr& predicate = {}) {
    return region_lower_bound(region, inputs, predicate, analyzer);
  }
  void expect(const IntSet& set, const Expr& min, const Expr& max) {
    EXPECT_TRUE(same_expr(set.min, min) && same_expr(set.max, max));
  }
};

TEST_F(RegionBoundTest, CoversWhatTheLoopsReach) {
  auto box = lower({make<Range>({i * 4 + j + x, i32(1)})});
  ASSERT_TRUE(box);
  expect((*box)[0], x, x + 31);
  box = lower({make<Range>({i * 4, i32(4)}), make<Range>({j, i32(1)})});
  ASSERT_TRUE(box);
  expect((*box)[0], i32(0), i32(31));
  expect((*box)[1], i32(0), i32(3));
}

TEST_F(RegionBoundTest, GapsAndDependenceGiveNothing) {
  EXPECT_FALSE(lower({make<Range>({i * 4, i32(3)})}));
  EXPECT_FALSE(lower({make<Range>({i, i32(1)}), make<Range>({i, i32(1)})}));
  EXPECT_FALSE(lower({make<Range>({i + j, i32(1)})}));
}

TEST_F(RegionBoundTest, PredicatesShorten) {
  auto box = lower({make<Range>({i * 4 + j, i32(1)})}, lt(i * 4 + j, i32(30)));
  ASSERT_TRUE(box);
  expect((*box)[0], i32(0), i32(29));
}

TEST_F(RegionBoundTest, Unions) {
  Box a{IntSet::interval(i32(0), i32(7)), IntSet::interval(i32(0), n)};
  Box next{IntSet::interval(i32(8), i32(9)), IntSet::interval(i32(0), n)};
  Box far{IntSet::interval(i32(12), i32(14)), IntSet::interval(i32(0), n)};
  Box larger{IntSet::interval(i32(0), i32(20)), IntSet::interval(i32(0), n + 1)};
  expect(unite_lower_bound(a, next, analyzer)[0], i32(0), i32(9));
  expect(unite_lower_bound(a, far, analyzer)[0], i32(0), i32(7));
  expect(unite_lower_bound(a, larger, analyzer)[0], i32(0), i32(20));
}

}  // namespace
}  // namespace tilewright::arith
