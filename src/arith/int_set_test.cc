#include "arith/int_set.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "arith/buffer_values.h"
#include "arith/test_evaluator.h"
#include "ir/structural.h"

namespace tilewright::arith {
namespace {

class IntSetTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), j = var("j"), k = var("k"), x = var("x");
  Ref<Var> n = size_var("n");
  Analyzer analyzer;
  Domains domains{{i, IntSet::of_range(range_of(i32(16)))}, {j, IntSet::of_range(range_of(i32(4)))}};

  void expect(const IntSet& set, const Expr& min, const Expr& max) {
    auto same = [](const Expr& a, const Expr& b) {
      return a.defined() == b.defined() && (!a.defined() || same_expr(a, b));
    };
    EXPECT_TRUE(same(set.min, min)) << (set.min.defined() ? text(set.min) : "open");
    EXPECT_TRUE(same(set.max, max)) << (set.max.defined() ? text(set.max) : "open");
  }
  IntSet of(const Expr& e, const Expr& predicate = {}) { return eval_set(e, domains, analyzer, predicate); }
};

TEST_F(IntSetTest, Sums) {
  expect(of(i * 4 + j), i32(0), i32(63));
  expect(of(x + i), Expr(x), x + 15);
  expect(of(x - i), x - 15, Expr(x));
  expect(of(i - i + x), Expr(x), Expr(x));
  expect(of(i * n), i32(0), n * 15);
}

TEST_F(IntSetTest, Divisions) {
  expect(of(floordiv(i, 4)), i32(0), i32(3));
  expect(of(floormod(i, 4)), i32(0), i32(3));
  expect(of(floormod(j + 8, 32)), i32(8), i32(11));
  expect(of(floordiv(x * 8 + i, 8)), Expr(x), x + 1);
  expect(of(floormod(x + i, 8)), i32(0), i32(7));
}

TEST_F(IntSetTest, MinMaxSelect) {
  expect(of(min(i, x)), min(x, i32(0)), min(x, i32(15)));
  expect(of(max(i, i32(5))), i32(5), i32(15));
  expect(of(select(lt(x, i32(0)), i, j + 20)), i32(0), i32(23));
}

TEST_F(IntSetTest, DomainsThatDependOnOneAnother) {
  domains[k] = IntSet::of_range(make<Range>({i, j + 1}));
  expect(of(k), i32(0), i32(18));
}

TEST_F(IntSetTest, PredicatesClip) {
  expect(of(i * 4 + j, lt(i * 4 + j, i32(50))), i32(0), i32(49));
  expect(of(i * 4 + j + x, lt(i * 4 + j, i32(50))), Expr(x), x + 49);
  expect(of(i, logical_and(le(i32(3), i), lt(i, n))), i32(3), min(n, i32(16)) - 1);
}

TEST_F(IntSetTest, WhatIsUnknownStaysOpen) {
  Ref<Buffer> A = decl_buffer({i32(16)}, DataType::int_(32), "A");
  EXPECT_TRUE(of(load(A, {i})).is_everything());
  EXPECT_TRUE(of(load(A, {x})).is_point());
  EXPECT_TRUE(of(cast(DataType::int_(8), i) + cast(DataType::int_(8), i)).is_everything());
}

TEST_F(IntSetTest, SetAlgebra) {
  IntSet a = IntSet::interval(i32(0), i32(7)), b = IntSet::interval(i32(4), i32(15));
  expect(unite(a, b, analyzer), i32(0), i32(15));
  expect(intersect(a, b, analyzer), i32(4), i32(7));
  EXPECT_TRUE(intersect(a, IntSet::interval(i32(8), {}), analyzer).is_nothing);
  EXPECT_TRUE(proves_subset(a, IntSet::interval(i32(0), n + 7), analyzer));
  EXPECT_FALSE(proves_subset(a, IntSet::interval(i32(0), n), analyzer));
  EXPECT_TRUE(IntSet::of_range(range_of(i32(0))).is_nothing);
  EXPECT_TRUE(proves_subset(IntSet::nothing(), a, analyzer));
}

TEST_F(IntSetTest, Regions) {
  Region region{make<Range>({i * 4, i32(4)}), make<Range>({j, i32(1)}), make<Range>({x, n})};
  Box box = relax_region(region, domains, analyzer);
  expect(box[0], i32(0), i32(63));
  expect(box[1], i32(0), i32(3));
  expect(box[2], Expr(x), x + n - 1);
  Region clipped = clip_to_shape(box, {i32(60), i32(4), n}, analyzer);
  EXPECT_TRUE(is_const_int(clipped[0]->extent, 60));
  EXPECT_TRUE(is_const_int(clipped[1]->extent, 4));
  Box joined =
      unite(box, box_of({make<Range>({i32(60), i32(8)}), make<Range>({i32(0), i32(1)}), range_of(n)}), analyzer);
  expect(joined[0], i32(0), i32(67));
  EXPECT_TRUE(proves_subset(box[0], joined[0], analyzer));
}

/// Random expressions over two running variables and one fixed one: the set contains every value.
TEST_F(IntSetTest, HoldsEveryValue) {
  std::mt19937_64 random(7);
  auto pick = [&](int count) { return static_cast<int>(random() % static_cast<uint64_t>(count)); };
  auto number = [&](auto& self, int depth) -> Expr {
    if (depth == 0) {
      Expr leaves[] = {i, j, x, i32(pick(20) - 6)};
      return leaves[pick(4)];
    }
    Expr a = self(self, depth - 1);
    switch (pick(8)) {
      case 0:
        return a + self(self, depth - 1);
      case 1:
        return a - self(self, depth - 1);
      case 2:
        return a * (pick(9) - 3);
      case 3:
        return floordiv(a, pick(7) + 1);
      case 4:
        return floormod(a, pick(7) + 1);
      case 5:
        return min(a, self(self, depth - 1));
      case 6:
        return max(a, self(self, depth - 1));
      default:
        return a * self(self, 1);
    }
  };
  for (int round = 0; round < 3000; ++round) {
    Expr e = number(number, 1 + pick(4));
    Expr predicate = pick(2) ? lt(number(number, 2), number(number, 1)) : Expr();
    IntSet set = of(e, predicate);
    for (int point = 0; point < 30; ++point) {
      Env env{{i, pick(16)}, {j, pick(4)}, {x, pick(30) - 10}};
      auto holds = predicate.defined() ? evaluate(predicate, env) : 1;
      auto value = evaluate(e, env);
      if (!holds || !*holds || !value) continue;
      ASSERT_FALSE(set.is_nothing) << text(e);
      if (set.min.defined()) {
        ASSERT_LE(*evaluate(set.min, env), *value) << text(e) << " >= " << text(set.min);
      }
      if (set.max.defined()) {
        ASSERT_GE(*evaluate(set.max, env), *value) << text(e) << " <= " << text(set.max);
      }
    }
  }
}

/// Size needed by clamped reads around tiles of 32, against the size available: 5 reads of 517 elements.
TEST_F(IntSetTest, ClampedTiles) {
  auto last = [&](int64_t reach) { return min(i * 32 + (31 + reach), i32(516)); };
  Expr need = min(i * 32 - max(i * 32, i32(485)), i32(-2)) + 518;  // last(2), where it is simplified
  Expr has = min(max(max(i * 32 + 31, min(i * 8, i32(121)) * 4 + 32), min(i * 32, i32(483)) + 33), i32(516));
  analyzer.bind(i, range_of(i32(17)));
  auto is_inside = [&](const Expr& inner, const Expr& outer) {
    return proves_subset(IntSet::interval(i32(0), inner), IntSet::interval(i32(0), outer), analyzer);
  };
  EXPECT_TRUE(is_inside(need, has));
  EXPECT_TRUE(is_inside(last(1), has));
  EXPECT_TRUE(is_inside(need, last(2)));
  EXPECT_FALSE(is_inside(need, last(1)));
  EXPECT_FALSE(is_inside(need, has - 1));
  EXPECT_FALSE(is_inside(last(3), has));
}

/// Only what holds for all values is proved: random sums of min and max against their values.
TEST_F(IntSetTest, OrdersOfChoices) {
  std::mt19937 random(11);
  auto pick = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); };
  std::function<Expr(int)> number = [&](int depth) -> Expr {
    if (depth == 0) return pick(2) ? Expr(i32(pick(24))) : i * i32(1 + pick(3)) + i32(pick(9) - 4);
    Expr a = number(depth - 1), b = number(depth - 1);
    switch (pick(4)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return min(a, b);
      default:
        return max(a, b);
    }
  };
  int proved = 0;
  analyzer.bind(i, range_of(i32(16)));
  for (int round = 0; round < 400; ++round) {
    Expr a = number(2), b = number(2) + i32(pick(20));
    bool holds = true;
    for (int64_t value = 0; value < 16; ++value) holds &= *evaluate(a, {{i, value}}) <= *evaluate(b, {{i, value}});
    const bool answer = proves_subset(IntSet::interval(i32(-999), a), IntSet::interval(i32(-999), b), analyzer);
    ASSERT_TRUE(holds || !answer) << text(a) << " <= " << text(b);
    proved += answer;
  }
  EXPECT_GT(proved, 40);
}

TEST_F(IntSetTest, ElementsOfBuffers) {
  auto element = [](const Ref<Buffer>& of, const Expr& at) -> Expr {
    return make<BufferLoad>({.buffer = of, .indices = {at}, .predicate = {}});
  };
  Ref<Buffer> p = decl_buffer({i32(17)}, DataType::int_(32), "P"), c = decl_buffer({n}, DataType::int_(32), "C");
  assume(analyzer, BufferDomain{p, i32(0), n + 1, ValueOrder::kNondecreasing, {}});
  assume(analyzer, BufferDomain{c, i32(0), i32(40), ValueOrder::kNone, {}});
  expect(of(element(c, i)), i32(0), i32(39));
  expect(of(element(c, x)), element(c, x), element(c, x));
  expect(of(element(p, i)), element(p, i32(0)), element(p, i32(15)));
  expect(of(element(p, i + 1)), element(p, i32(1)), element(p, i32(16)));
  // i + 2 may be out of bounds, so the upper bound is the declared domain of the buffer instead of an element.
  expect(of(element(p, i + 2)), element(p, i32(2)), Expr(n));
}

}  // namespace
}  // namespace tilewright::arith
