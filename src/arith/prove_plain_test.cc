// Orders and normal forms of plain sums against all values, and against an analyzer that has to take the long way.
#include <gtest/gtest.h>

#include <random>

#include "arith/analyzer.h"
#include "arith/int_set.h"
#include "arith/linear.h"
#include "arith/test_evaluator.h"
#include "ir/build.h"

namespace tilewright::arith {
namespace {

class PlainSums : public testing::Test {
 protected:
  std::mt19937 random{3};
  Ref<Var> i = var("i"), j = var("j"), n = var("n");

  int below(int bound) { return static_cast<int>(random() % bound); }
  Expr sum(int terms, bool with_unknown) {
    const Expr leaves[] = {i, j, n};
    Expr e = i32(below(9) - 4);
    for (int t = 0; t < terms; ++t) {
      Expr leaf = leaves[below(with_unknown ? 3 : 2)] * i32(below(7) - 3);
      e = below(2) ? e + leaf : below(2) ? e - leaf : leaf - e;
      if (below(4) == 0) e = e * i32(below(5) - 2);
    }
    return e;
  }
};

TEST_F(PlainSums, OrdersAreExact) {
  for (int round = 0; round < 3000; ++round) {
    Analyzer analyzer;
    analyzer.bind(i, make<Range>({i32(1), i32(5)}));
    analyzer.bind(j, range_of(i32(4)));
    Expr a = sum(below(4), false), b = sum(below(4), false);
    bool less = true, at_most = true, equal = true;
    for (int64_t x = 1; x < 6; ++x) {
      for (int64_t y = 0; y < 4; ++y) {
        int64_t left = *evaluate(a, {{i, x}, {j, y}}), right = *evaluate(b, {{i, x}, {j, y}});
        less &= left < right;
        at_most &= left <= right;
        equal &= left == right;
      }
    }
    EXPECT_EQ(analyzer.can_prove_less(a, b), less);
    EXPECT_EQ(analyzer.can_prove_less_equal(a, b), at_most);
    EXPECT_EQ(analyzer.can_prove_equal(a, b), equal);
    EXPECT_EQ(analyzer.can_prove(lt(a, b)), less);
    EXPECT_EQ(analyzer.can_prove(ge(b, a)), at_most);
  }
}

TEST_F(PlainSums, OrdersOfDigitsAreNeverWrong) {
  auto digit = [&](auto&& self, int depth) -> Expr {
    if (depth == 0) return below(5) ? Expr(below(2) ? i : j) : Expr(i32(below(12)));
    Expr x = self(self, depth - 1), y = self(self, depth - 1);
    switch (below(7)) {
      case 0:
        return floordiv(x, i32(1 + below(5)));
      case 1:
        return floormod(x, i32(1 + below(5)));
      case 2:
        return min(x, y);
      case 3:
        return max(x, y);
      case 4:
        return x * i32(below(7) - 3);
      case 5:
        return x - y;
      default:
        return x + y;
    }
  };
  int yes = 0, no = 0;
  for (int round = 0; round < 4000; ++round) {
    Analyzer analyzer, with_facts;
    for (Analyzer* each : {&analyzer, &with_facts}) {
      each->bind(i, make<Range>({i32(-3), i32(9)}));
      each->bind(j, range_of(i32(7)));
    }
    with_facts.assume(lt(i, j));
    Expr a = digit(digit, below(4)), b = below(4) ? digit(digit, below(3)) : a + below(4);
    bool less = true, less_where_assumed = true;
    for (int64_t x = -3; x < 6; ++x) {
      for (int64_t y = 0; y < 7; ++y) {
        bool holds = *evaluate(a, {{i, x}, {j, y}}) < *evaluate(b, {{i, x}, {j, y}});
        less &= holds;
        if (x < y) less_where_assumed &= holds;
      }
    }
    bool proved = analyzer.can_prove_less(a, b);
    EXPECT_TRUE(less || !proved);
    EXPECT_TRUE(less_where_assumed || !with_facts.can_prove_less(a, b));
    EXPECT_TRUE(!proved || with_facts.can_prove_less(a, b)) << "knowing more, it says less";
    yes += proved;
    no += !proved && less;
  }
  EXPECT_GT(yes, 400);
  EXPECT_LT(no, yes / 4) << "true, and not proved";
}

TEST_F(PlainSums, FactsStillCount) {
  Analyzer analyzer;
  analyzer.bind(i, range_of(i32(8)));
  EXPECT_FALSE(analyzer.can_prove(lt(i, i32(4))));
  analyzer.assume(lt(i, i32(4)));
  EXPECT_TRUE(analyzer.can_prove(lt(i, i32(4))));
  EXPECT_TRUE(analyzer.can_prove_less(Expr(i) + n, Expr(n) + 4));
  Analyzer symbolic;
  symbolic.bind(i, range_of(n));
  EXPECT_TRUE(symbolic.can_prove(lt(i, n)));
  EXPECT_FALSE(symbolic.can_prove(lt(n, i)));
}

TEST_F(PlainSums, NormalFormsAreThoseOfTheAnalyzer) {
  int kept = 0;
  for (int round = 0; round < 2000; ++round) {
    Expr e = sum(below(5), true);
    Expr known = simplified_sum(e);
    ASSERT_TRUE(known.defined());
    // A variable with a value makes the analyzer take the long way.
    Analyzer analyzer;
    analyzer.bind(var("other"), Expr(i32(3)));
    Expr expected = analyzer.simplify(e);
    EXPECT_TRUE(identical(known, expected));
    kept += known == e;
    EXPECT_EQ(known == e, expected == e);
  }
  EXPECT_GT(kept, 20);
  int digits = 0;
  for (int round = 0; round < 3000; ++round) {
    Analyzer analyzer, long_way;
    const Ref<Var> vars[] = {i, j, n};
    const int64_t extents[] = {24, 16, 40};
    for (Analyzer* each : {&analyzer, &long_way}) {
      for (int v = 0; v < 3; ++v) each->bind(vars[v], range_of(i32(extents[v])));
    }
    long_way.bind(var("other"), Expr(i32(3)));
    Expr e = i32(below(3));
    for (int t = 0; t < 1 + below(4); ++t) {
      Expr part = vars[below(3)];
      Expr by = i32(1 + below(28));
      part = below(3) ? part : below(2) ? floordiv(part, by) : floormod(part, by);
      e = below(5) ? e + part * (below(7) - 1) : e - part;
    }
    EXPECT_TRUE(identical(analyzer.simplify(e), long_way.simplify(e)));
    digits += e.depth() > 3;
  }
  EXPECT_GT(digits, 1000);
  EXPECT_FALSE(simplified_sum(floordiv(Expr(i) + 1, i32(2))).defined());
  EXPECT_FALSE(simplified_sum(Expr(i) * j).defined());
  Analyzer fixed;
  fixed.bind(i, make<Range>({i32(5), i32(1)}));
  EXPECT_TRUE(is_const_int(fixed.simplify(Expr(i) + 1), 6));
}

}  // namespace
}  // namespace tilewright::arith
