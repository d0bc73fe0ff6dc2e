// Intervals of quotients by what is no constant: as tight as the ends of the dividend allow, and never too tight.
#include <gtest/gtest.h>

#include <random>

#include "arith/analyzer.h"
#include "arith/test_evaluator.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

class Quotients : public ::testing::Test {
 protected:
  Ref<Var> n = var("n"), m = var("m"), f = var("f"), g = var("g");

  /// Divisors that are at least 1.
  std::vector<Expr> divisors() const { return {n, n + 1, n * 2, n * m, n * m + n, n * 3 + 2, (n + 1) * m}; }
  void bind_sizes(Analyzer& analyzer, int64_t least = 1) const {
    for (const Ref<Var>& size : {n, m}) analyzer.assume(le(i32(static_cast<int32_t>(least)), size));
  }
};

TEST_F(Quotients, MultiplesOfTheDivisorBoundTheQuotient) {
  for (const Expr& d : divisors()) {
    for (int32_t count = 1; count <= 5; ++count) {
      for (bool is_loop : {true, false}) {
        Analyzer analyzer;
        bind_sizes(analyzer);
        if (is_loop) {
          analyzer.bind(f, i32(0), d * i32(count));
        } else {
          analyzer.assume(le(i32(0), f));
          analyzer.assume(lt(f, d * i32(count)));
        }
        EXPECT_EQ(analyzer.const_int_bound(floordiv(f, d)), (ConstIntBound{0, count - 1})) << text(d) << " " << count;
      }
    }
  }
}

/// A loop that runs has iterations.
TEST_F(Quotients, TheDividendSaysThatTheDivisorIsPositive) {
  for (const Expr& d : std::vector<Expr>{n, n + 3, n * 2 - 1, n * m}) {
    Analyzer analyzer;
    analyzer.bind(f, i32(0), d * i32(3));
    EXPECT_EQ(analyzer.const_int_bound(floordiv(f, d)), (ConstIntBound{0, 2})) << text(d);
    Analyzer other;  // f may be below 0, and so may d
    other.assume(le(i32(-9), f));
    other.assume(lt(f, d * i32(3)));
    EXPECT_LT(other.const_int_bound(floordiv(f, d)).min_value, -1) << text(d);
  }
}

TEST_F(Quotients, BothEndsMayBeMultiples) {
  for (const Expr& d : divisors()) {
    Analyzer analyzer;
    bind_sizes(analyzer);
    analyzer.bind(f, d * i32(-2), d * i32(5));
    EXPECT_EQ(analyzer.const_int_bound(floordiv(f, d)), (ConstIntBound{-2, 2})) << text(d);
    EXPECT_EQ(analyzer.const_int_bound(floordiv(f + 7, d)).min_value, -2) << text(d);
  }
}

TEST_F(Quotients, RemaindersMinimaAndSumsAreFollowed) {
  Analyzer analyzer;
  bind_sizes(analyzer);
  analyzer.bind(f, i32(0), n * 2);
  analyzer.bind(g, i32(0), n * 3);
  EXPECT_EQ(analyzer.const_int_bound(floordiv(f + g, n)), (ConstIntBound{0, 4}));
  EXPECT_EQ(analyzer.const_int_bound(floordiv(f * 3, n)), (ConstIntBound{0, 5}));
  EXPECT_EQ(analyzer.const_int_bound(floordiv(f + 6, n + 2)), (ConstIntBound{0, 2}));
  Analyzer other;
  bind_sizes(other);
  other.assume(le(i32(0), f));
  EXPECT_EQ(other.const_int_bound(floordiv(floormod(f, n * 4 + 1), n)), (ConstIntBound{0, 4}));
  EXPECT_EQ(other.const_int_bound(floordiv(min(f, n * 4), n)), (ConstIntBound{0, 4}));
}

/// A divisor that may be below 0, or facts about other variables, say nothing.
TEST_F(Quotients, WhatIsNotKnownStaysOpen) {
  Analyzer analyzer;
  analyzer.assume(le(i32(0), f));
  analyzer.assume(lt(f, n * 2));
  EXPECT_EQ(analyzer.const_int_bound(floordiv(f, m)).max_value, ConstIntBound::of_type(DataType::int_(32)).max_value);
}

/// In one case of a proof f < n holds: what that says of the quotient is forgotten with the case.
TEST_F(Quotients, CasesOfProofsLeaveNothingBehind) {
  Analyzer analyzer;
  bind_sizes(analyzer);
  analyzer.bind(f, i32(0), n * 4);
  const Expr quotient = floordiv(f, n);
  analyzer.can_prove(le(min(f, n) * 2 + quotient, n * 2 + 2));
  analyzer.can_prove(le(max(f, n) - quotient * n, f + n));
  EXPECT_EQ(analyzer.const_int_bound(quotient), (ConstIntBound{0, 3}));
}

TEST_F(Quotients, NoValueIsOutside) {
  int bounded = 0, values = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    auto number = [&](int64_t low, int64_t high) { return i32(static_cast<int32_t>(pick(low, high))); };
    auto size = [&]() -> Expr {
      const std::vector<Expr> all = {n, m, n * m, n + m, n * number(1, 3) + number(-2, 4), m * n + number(-1, 2)};
      return all[static_cast<size_t>(pick(0, 5))];
    };
    auto end = [&] { return size() * number(-2, 4) + number(-3, 5); };
    const int64_t least = pick(-2, 2);
    const Expr low = end(), high = end(), also = end(), divisor = size();
    auto dividend = [&]() -> Expr {
      const std::vector<Expr> all = {f,     f * number(-3, 3) + number(-4, 4), min(f, also), max(f, also),
                                     f + g, floormod(f, divisor * 2 + 1) + g,  f - also};
      return all[static_cast<size_t>(pick(0, 6))];
    };
    const Expr quotient = floordiv(dividend(), divisor);
    const std::vector<Expr> known = {le(i32(static_cast<int32_t>(least)), n),
                                     le(i32(static_cast<int32_t>(least)), m),
                                     le(low, f),
                                     lt(f, high),
                                     le(i32(0), g),
                                     lt(g, also)};
    Analyzer analyzer;
    for (const Expr& condition : known) analyzer.assume(condition);
    const ConstIntBound found = analyzer.const_int_bound(quotient);
    bounded += found.min_value > -100 && found.max_value < 100;
    for (int64_t a = least; a <= 3; ++a) {
      for (int64_t b = least; b <= 3; ++b) {
        for (int64_t x = -12; x <= 24; ++x) {
          for (int64_t y = 0; y <= 9; y += 3) {
            const Env point{{n, a}, {m, b}, {f, x}, {g, y}};
            const bool holds =
                all_of(known, [&](const Expr& condition) { return evaluate(condition, point).value_or(0) != 0; });
            auto value = evaluate(quotient, point);
            if (!holds || !value) continue;
            ++values;
            EXPECT_TRUE(found.contains(*value)) << "seed " << seed << ": " << text(quotient) << " = " << *value;
          }
        }
      }
    }
  }
  EXPECT_GT(bounded, 60);
  EXPECT_GT(values, 20000);
}

}  // namespace
}  // namespace tilewright::arith
