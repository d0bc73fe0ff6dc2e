#include "arith/analyzer.h"

#include <gtest/gtest.h>

#include <random>

#include "arith/buffer_values.h"
#include "arith/test_evaluator.h"
#include "ir/build.h"
#include "ir/structural.h"

namespace tilewright::arith {
namespace {

class AnalyzerTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), j = var("j"), k = var("k"), x = var("x"), y = var("y"), z = var("z");
  Ref<Var> n = size_var("n"), m = size_var("m");
  Analyzer analyzer;

  void range(const Ref<Var>& v, int64_t extent) { analyzer.bind(v, range_of(i32(extent))); }
  void expect(const Expr& e, const Expr& wanted) {
    Expr got = analyzer.simplify(e);
    EXPECT_TRUE(same_expr(got, wanted)) << text(e) << "\n  gave   " << text(got) << "\n  wanted " << text(wanted);
  }
};

TEST_F(AnalyzerTest, SumsAreCollected) {
  expect(x + y + x, x * 2 + y);
  expect((x + 3) - (x - y) + 4, y + 7);
  expect(x * 4 - x * 4, i32(0));
  expect((x + y) * 4 - y * 4, x * 4);
  expect(i32(0) - x, Expr(make<Mul>({x, i32(-1)})));
  expect(y - x, y - x);
  expect(x * y - y * x, i32(0));
  expect((x + 1) * n - x * n, Expr(n));
}

TEST_F(AnalyzerTest, WhatIsStatedOfProductsComesBeforeWhatFollows) {
  // Both factors are known too, from which a lot follows that does not help.
  analyzer.assume(ge(n, i32(1)));
  analyzer.assume(ge(m, i32(1)));
  analyzer.bind(i, range_of(n * m));
  EXPECT_TRUE(analyzer.can_prove(lt(i, n * m)));
  EXPECT_TRUE(analyzer.can_prove(lt(floordiv(i, n), m)));
  EXPECT_FALSE(analyzer.can_prove(lt(i + 1, n * m)));
  EXPECT_FALSE(analyzer.can_prove(lt(floordiv(i, m), m)));
}

TEST_F(AnalyzerTest, UnchangedComesBackAsTheSameNode) {
  Expr e = floordiv(x * 8 + y, 32) + min(x, y);
  EXPECT_TRUE(analyzer.simplify(e) == e);
}

TEST_F(AnalyzerTest, DivisionsSplit) {
  range(i, 16);
  range(j, 4);
  range(k, 8);
  expect(floordiv(i * 4 + j, 4), Expr(i));
  expect(floormod(i * 4 + j, 4), Expr(j));
  expect(floordiv(x * 8 + k, 32), floordiv(x, 4));
  expect(floormod(x * 8 + k, 32), floormod(x, 4) * 8 + k);
  expect(floordiv(floordiv(x, 4), 8), floordiv(x, 32));
  expect(floordiv(x * 32 + y, 8), x * 4 + floordiv(y, 8));
  expect(floormod(x * 33, 32), floormod(x, 32));
  expect(floormod(floormod(x, 12), 4), floormod(x, 4));
  expect(floormod(floordiv(x, 4), 8), floordiv(floormod(x, 32), 4));
  expect(floordiv(i, 16), i32(0));
  // Nine halves of something below two are four; of something below three they are not.
  Ref<Var> two = var("two"), three = var("three");
  range(two, 2);
  range(three, 3);
  expect(floordiv(two * 9, 2), two * 4);
  expect(floordiv(two * 9 + 4, 2), two * 4 + 2);
  expect(floordiv(three * 9, 2), floordiv(three * 9, 2));
  expect(floormod(i, 16), Expr(i));
  expect(floormod(x + floormod(y, 8), 4), floormod(x + y, 4));
}

TEST_F(AnalyzerTest, QuotientAndRemainderJoin) {
  expect(floordiv(x, 4) * 4 + floormod(x, 4), Expr(x));
  expect(floordiv(x, 32) * 8 + floordiv(floormod(x, 32), 4), floordiv(x, 4));
  expect(floordiv(x + 1, 4) * 4 + floormod(x + 1, 4) - 1, Expr(x));
  expect((floordiv(x, 4) * 4 + floormod(x, 4)) * 3 + y, x * 3 + y);
  expect(x - floordiv(x, 4) * 4, floormod(x, 4));
  expect(x + y - floormod(x, 4), y + floordiv(x, 4) * 4);
  expect((x + y) * 2 - floordiv(x + y, 8) * 16, floormod(x + y, 8) * 2);
}

TEST_F(AnalyzerTest, FusedLoopsSeparate) {
  range(i, 10);
  range(j, 20);
  range(k, 30);
  Expr fused = (i * 20 + j) * 30 + k;
  expect(floordiv(fused, 600), Expr(i));
  expect(floormod(floordiv(fused, 30), 20), Expr(j));
  expect(floormod(fused, 30), Expr(k));
}

TEST_F(AnalyzerTest, SymbolicDivisors) {
  analyzer.bind(j, range_of(n));
  expect(floordiv(i * n + j, n), Expr(i));
  expect(floormod(i * n + j, n), Expr(j));
  expect(floordiv(i * n * m, n * m), Expr(i));
  expect(floordiv(n, n), i32(1));
}

TEST_F(AnalyzerTest, TruncatingDivisionBecomesFlooring) {
  range(i, 100);
  expect(truncdiv(i * 4 + 2, i32(4)), Expr(i));
  expect(truncmod(i * 4 + 2, i32(4)), i32(2));
  expect(truncdiv(x * 4, i32(4)), Expr(x));
  expect(truncdiv(x, i32(4)), truncdiv(x, i32(4)));
}

TEST_F(AnalyzerTest, MinMaxSelect) {
  range(i, 16);
  expect(min(i, i32(16)), Expr(i));
  expect(max(i - 16, i32(0)), i32(0));
  expect(min(x + 4, x + 1), x + 1);
  expect(min(x + y, z + y), min(x, z) + y);
  expect(select(lt(i, i32(16)), x, y), Expr(x));
  expect(select(lt(x, i32(3)), min(x, i32(3)), y), select(lt(x, i32(3)), x, y));
  expect(select(lt(x, y), z, z), Expr(z));
}

TEST_F(AnalyzerTest, Comparisons) {
  range(i, 16);
  range(j, 4);
  expect(lt(i * 4 + j, i32(64)), bool_imm(true));
  expect(lt(i * 4 + j, i32(32)), lt(i, i32(8)));
  expect(lt(i * 4 + j, i32(33)), lt(i * 4 + j, i32(33)));
  expect(ge(i, i32(0)), bool_imm(true));
  expect(gt(x, y), lt(y, x));
  expect(lt(x + 3, y + 5), lt(x, y + 2));
  expect(lt(x + z, y + z), lt(x, y));
  expect(lt(x * 4, i32(10)), lt(x, i32(3)));
  expect(lt(i32(0), n - x), lt(x, n));
  expect(eq(x * 2, i32(3)), bool_imm(false));
  expect(eq(x * 2, i32(6)), eq(x, i32(3)));
  expect(eq(i, i32(16)), bool_imm(false));
  expect(eq(floordiv(x, 4) * 4 + floormod(x, 4), x), bool_imm(true));
}

TEST_F(AnalyzerTest, Logic) {
  range(i, 16);
  expect(logical_and(lt(x, y), lt(x, y)), lt(x, y));
  expect(logical_and(lt(x, i32(3)), lt(x, i32(5))), lt(x, i32(3)));
  expect(logical_and(lt(x, i32(5)), lt(x, i32(3))), lt(x, i32(3)));
  expect(logical_and(lt(x, i32(3)), lt(i32(3), x)), bool_imm(false));
  expect(logical_or(lt(x, i32(5)), le(i32(5), x)), bool_imm(true));
  expect(logical_not(lt(x, y)), le(y, x));
  expect(logical_and(lt(x, y), lt(i, i32(16))), lt(x, y));
}

TEST_F(AnalyzerTest, ScopesOfConstraints) {
  {
    auto outer = analyzer.constraint(lt(x, i32(8)));
    EXPECT_TRUE(analyzer.can_prove(lt(x, i32(9))));
    {
      auto inner = analyzer.constraint(ge(x, i32(0)));
      expect(floordiv(x, 8), i32(0));
      EXPECT_EQ(analyzer.const_int_bound(x), (ConstIntBound{0, 7}));
    }
    EXPECT_FALSE(analyzer.can_prove(ge(x, i32(0))));
  }
  EXPECT_FALSE(analyzer.can_prove(lt(x, i32(9))));
}

TEST_F(AnalyzerTest, ProvesFromFacts) {
  auto s0 = analyzer.constraint(lt(x, y));
  auto s1 = analyzer.constraint(lt(y, z));
  EXPECT_TRUE(analyzer.can_prove(lt(x + 1, z)));
  EXPECT_FALSE(analyzer.can_prove(lt(x + 2, z)));
  EXPECT_TRUE(analyzer.can_prove(ne(x, z)));
  analyzer.bind(i, range_of(n));
  EXPECT_TRUE(analyzer.can_prove(lt(i, n)));
  EXPECT_TRUE(analyzer.can_prove(lt(i * 4 + 3, n * 4)));
  EXPECT_TRUE(analyzer.can_prove(ge(ceildiv(m, i32(32)) * 32, m)));
  EXPECT_TRUE(analyzer.can_prove(le(min(m, n), n + 1)));
  EXPECT_TRUE(analyzer.can_prove(le(floordiv(m, 4), m)));
  EXPECT_FALSE(analyzer.can_prove(lt(floordiv(m, 4), m)));
}

TEST_F(AnalyzerTest, FusedSymbolicIndexStaysInside) {
  analyzer.bind(i, range_of(n));
  analyzer.bind(j, range_of(m));
  EXPECT_TRUE(analyzer.can_prove(lt(i * m + j, n * m)));
}

TEST_F(AnalyzerTest, ResiduesOfSymbolicSizes) {
  auto scope = analyzer.constraint(eq(floormod(n, 16), i32(0)));
  expect(floormod(n, 8), i32(0));
  expect(floordiv(n, 16) * 16, Expr(n));
  EXPECT_EQ(analyzer.modular_set(n * 2 + 3), (ModularSet{32, 3}));
}

TEST_F(AnalyzerTest, MixedWidths) {
  Ref<Var> l = var("l", DataType::int_(64));
  DataType wide = DataType::int_(64);
  EXPECT_TRUE(analyzer.can_prove_equal(cast(wide, x + 1) + l, l + cast(wide, x) + i64(1)));
  range(i, 16);
  expect(floordiv(cast(wide, i) + l * 16, 16), Expr(l));
  expect(cast(DataType::int_(32), cast(wide, x)), Expr(x));
}

TEST_F(AnalyzerTest, WrappingTypesKeepTheirWraps) {
  Ref<Var> u = var("u", DataType::uint(8)), v = var("v", DataType::int_(8));
  EXPECT_FALSE(analyzer.can_prove(lt(u, u + 1)));
  EXPECT_FALSE(analyzer.can_prove(lt(v, v + 1)));
  Expr e = floordiv(u * 4, 4);
  EXPECT_TRUE(same_expr(analyzer.simplify(e), e));
  EXPECT_EQ(analyzer.const_int_bound(u + 1), (ConstIntBound{0, 255}));
  EXPECT_TRUE(analyzer.can_prove(le(u, constant(DataType::uint(8), 255))));
  expect(u - u, zero(DataType::uint(8)));
}

TEST_F(AnalyzerTest, UnsignedIntegersOf64BitsWrap) {
  Expr n64 = var("n", DataType::uint(64));
  auto u64 = [](uint64_t value) { return int_imm(DataType::uint(64), static_cast<int64_t>(value)); };
  for (const Expr& e : {gt(n64 + u64(5), u64(3)), ge(n64 * u64(2), n64), lt(n64 - u64(1), n64)}) {
    EXPECT_FALSE(analyzer.can_prove(e));
    EXPECT_FALSE(analyzer.simplify(e).is<IntImm>());
  }
  EXPECT_EQ(const_int(analyzer.simplify(make<FloorMod>({u64(~uint64_t{2}), u64(5)}))), 3);
}

TEST_F(AnalyzerTest, TheSmallestNumber) {
  // The quotient by -1 and the negative of the smallest number do not fit: computing them ended the process.
  Expr x = var("x", DataType::int_(64)), y = var("y", DataType::int_(64));
  Expr smallest = int_imm(DataType::int_(64), std::numeric_limits<int64_t>::min());
  auto scope = analyzer.constraint(le(y, int_imm(DataType::int_(64), 0) - x));
  EXPECT_FALSE(analyzer.can_prove(ge(x * smallest, y * int_imm(DataType::int_(64), 5))));
  for (const Expr& e : {floordiv(x, smallest), max(x, smallest), x + smallest, smallest - x, x * smallest}) {
    EXPECT_FALSE(analyzer.can_prove(lt(e, smallest))) << text(e);
    EXPECT_LE(analyzer.const_int_bound(e).min_value, -1) << text(e);
  }
  EXPECT_EQ(const_int(analyzer.simplify(make<FloorMod>({smallest, i64(-1)}))), 0);
}

TEST_F(AnalyzerTest, ValuesFromLoadsMayWrap) {
  Ref<Buffer> A = decl_buffer({i32(16)}, DataType::int_(32), "A");
  Expr doubled = floordiv(load(A, {x}) * 4, 4);
  EXPECT_TRUE(analyzer.simplify_value(doubled) == doubled);
  EXPECT_TRUE(same_expr(analyzer.simplify(doubled), load(A, {x})));
  EXPECT_TRUE(same_expr(analyzer.simplify_value(load(A, {floordiv(x * 4, 4)})), load(A, {x})));
}

TEST_F(AnalyzerTest, ConditionsOnDataDoNotRearrange) {
  Ref<Buffer> A = decl_buffer({i32(16)}, DataType::int_(32), "A");
  Expr a = load(A, {x});
  // a + 1 < 5 also where a is the largest value and the sum wraps.
  Expr e = select(lt(a + 1, i32(5)), min(a, i32(3)), a);
  EXPECT_TRUE(analyzer.simplify_value(e) == e);
  Expr largest = max(a + 1, i32(-2147483647));
  EXPECT_TRUE(analyzer.simplify_value(largest) == largest);
  Expr both = logical_and(lt(a, y), lt(a + 1, y + 1));
  EXPECT_TRUE(analyzer.simplify_value(both) == both);
  EXPECT_TRUE(same_expr(analyzer.simplify(both), lt(a, y)));
  EXPECT_TRUE(same_expr(analyzer.simplify_value((a + y) - y), a));
  EXPECT_TRUE(same_expr(analyzer.simplify_value(a * 3 + a), a * 4));
}

TEST_F(AnalyzerTest, FloatsAreNotReassociated) {
  Ref<Var> f = var("f", DataType::float_(32)), g = var("g", DataType::float_(32));
  Expr e = (f + g) - g;
  EXPECT_TRUE(analyzer.simplify(e) == e);
  EXPECT_FALSE(analyzer.can_prove(eq(f, f)));  // NaN
  EXPECT_TRUE(analyzer.can_prove_equal(f + g, g + f));
}

TEST_F(AnalyzerTest, CallsWithEffectsAreNotMerged) {
  Expr impure = call(DataType::int_(32), "my_counter", {});
  Expr again = call(DataType::int_(32), "my_counter", {});
  EXPECT_FALSE(analyzer.can_prove_equal(impure, again));
  EXPECT_FALSE(analyzer.can_prove_equal(impure, impure));
  EXPECT_FALSE(is_const_int(analyzer.simplify(impure - impure), 0));
}

TEST_F(AnalyzerTest, Vectors) {
  range(i, 16);
  expect(ramp(x, i32(1), 4) + broadcast(y, 4), ramp(x + y, i32(1), 4));
  expect(ramp(x * 4, i32(1), 4) * broadcast(i32(2), 4), ramp(x * 8, i32(2), 4));
  expect(floordiv(ramp(x * 4, i32(1), 4), broadcast(i32(4), 4)), broadcast(x, 4));
  expect(floormod(ramp(x * 4, i32(1), 4), broadcast(i32(4), 4)), ramp(i32(0), i32(1), 4));
  expect(floordiv(ramp(x * 4, i32(1), 4), broadcast(i32(8), 4)), broadcast(floordiv(x, 2), 4));
  expect(lt(ramp(i * 4, i32(1), 4), broadcast(i32(64), 4)), broadcast(bool_imm(true), 4));
  expect(eq(broadcast(x, 4), broadcast(x, 4)), broadcast(bool_imm(true), 4));
  EXPECT_EQ(analyzer.const_int_bound(ramp(i, i32(2), 4)), (ConstIntBound{0, 21}));
  EXPECT_TRUE(analyzer.can_prove(lt(ramp(i * 4, i32(1), 4), broadcast(i32(64), 4))));
}

TEST_F(AnalyzerTest, BindToExpression) {
  analyzer.bind(x, i * 4 + j);
  range(j, 4);
  expect(floordiv(x, 4), Expr(i));
  analyzer.bind(y, make<Range>({i + 1, i32(1)}));
  expect(y - i, i32(1));
}

TEST_F(AnalyzerTest, ConstantsBeyondTheTypeAreLeftAlone) {
  Expr big = x * 65536;
  Expr e = make<Mul>({big, i32(65536)});
  EXPECT_EQ(analyzer.simplify(e).dtype(), DataType::int_(32));
  Ref<Var> l = var("l", DataType::int_(64));
  Expr f = make<Mul>({make<Mul>({l, i64(int64_t{1} << 62)}), i64(8)});
  EXPECT_EQ(analyzer.simplify(f).dtype(), DataType::int_(64));
  EXPECT_FALSE(analyzer.can_prove_equal(f, i64(0)));
}

TEST_F(AnalyzerTest, ConstantsThatWrapDecideNothing) {
  Expr wrapped = make<Add>({i32(2), i32(2147483646)});
  for (const Expr& e : {wrapped, Expr(make<Add>({wrapped, i32(1)})), Expr(make<Sub>({x, wrapped})), x * wrapped}) {
    for (const Expr& condition : {Expr(make<GE>({e, i32(0)})), Expr(make<LT>({e, i32(0)}))}) {
      EXPECT_FALSE(analyzer.can_prove(condition));
      EXPECT_FALSE(const_int(analyzer.simplify(condition)));
    }
  }
  EXPECT_EQ(analyzer.const_int_bound(wrapped).min_value, int_min(DataType::int_(32)));
  EXPECT_TRUE(analyzer.can_prove(make<GE>({make<Add>({i32(2), i32(2147483645)}), i32(0)})));
}

TEST_F(AnalyzerTest, SharedSubexpressionsDoNotBlowUp) {
  Expr e = x;
  for (int step = 0; step < 200; ++step) e = make<Add>({e, make<Sub>({e, e})});
  EXPECT_TRUE(same_expr(analyzer.simplify(e), x));
  Expr m1 = x;
  for (int step = 0; step < 100; ++step) m1 = make<Min>({make<Add>({m1, y}), make<Sub>({m1, y})});
  EXPECT_TRUE(analyzer.simplify(m1).defined());
}

TEST_F(AnalyzerTest, DeepExpressions) {
  Expr e = x;
  for (int step = 0; step < 10000; ++step) e = e + 1;
  expect(e, x + 10000);
  Expr d = x;
  for (int step = 0; step < 5000; ++step) d = make<FloorDiv>({make<Add>({d, i32(1)}), i32(2)});
  EXPECT_TRUE(analyzer.simplify(d).defined());
}

// Every value within the bounds, and in the class, for all values of the operands; the ends are reached.
TEST(Bounds, ShiftsAndMasks) {
  auto of = [](Intrinsic intrinsic, const Expr& a, const Expr& b) { return call(intrinsic, {a, b}); };
  auto x = var("x"), y = var("y");
  struct Case {
    Intrinsic intrinsic;
    ConstIntBound x, y;
    int64_t (*of)(int64_t, int64_t);
  };
  const Case cases[] = {
      {Intrinsic::k_shift_left, {0, 7}, {0, 3}, [](int64_t a, int64_t b) { return a * (int64_t{1} << b); }},
      {Intrinsic::k_shift_left, {-3, 5}, {1, 4}, [](int64_t a, int64_t b) { return a * (int64_t{1} << b); }},
      {Intrinsic::k_shift_right, {-9, 11}, {4, 10}, [](int64_t a, int64_t b) { return a >> b; }},
      {Intrinsic::k_shift_right, {10, 11}, {0, 1}, [](int64_t a, int64_t b) { return a >> b; }},
      {Intrinsic::k_shift_right, {-9, -7}, {0, 2}, [](int64_t a, int64_t b) { return a >> b; }},
  };
  for (const Case& c : cases) {
    Analyzer analyzer;
    analyzer.bind(x, make<Range>({i32(c.x.min_value), i32(c.x.max_value - c.x.min_value + 1)}));
    analyzer.bind(y, make<Range>({i32(c.y.min_value), i32(c.y.max_value - c.y.min_value + 1)}));
    ConstIntBound want{INT64_MAX, INT64_MIN};
    for (int64_t a = c.x.min_value; a <= c.x.max_value; ++a) {
      for (int64_t b = c.y.min_value; b <= c.y.max_value; ++b) {
        want.min_value = std::min(want.min_value, c.of(a, b));
        want.max_value = std::max(want.max_value, c.of(a, b));
      }
    }
    EXPECT_EQ(analyzer.const_int_bound(of(c.intrinsic, x, y)), want);
  }
  Analyzer analyzer;
  EXPECT_EQ(analyzer.const_int_bound(of(Intrinsic::k_shift_right, x, y)), ConstIntBound::of_type(x.dtype()));
  for (int64_t coeff : {1, 2, 8, 12, 16, 24}) {
    for (int64_t base : {0, 1, 5}) {
      Expr e = x * i32(coeff) + i32(base);
      ModularSet left = analyzer.modular_set(of(Intrinsic::k_shift_left, e, i32(2)));
      ModularSet right = analyzer.modular_set(of(Intrinsic::k_shift_right, e, i32(2)));
      ModularSet mask = analyzer.modular_set(of(Intrinsic::k_bitwise_and, e, i32(7)));
      auto holds = [](const ModularSet& set, int64_t value) { return floor_mod(value - set.base, set.coeff) == 0; };
      for (int64_t k = -20; k < 20; ++k) {
        int64_t value = k * coeff + base;
        EXPECT_TRUE(holds(left, value * 4) && holds(right, value >> 2) && holds(mask, value & 7)) << value;
      }
      EXPECT_EQ(left.coeff, coeff * 4);
      if (coeff % 4 == 0) {
        EXPECT_EQ(right.coeff, coeff / 4);
      }
      EXPECT_EQ(mask.coeff, gcd(coeff, 8));
    }
  }
}

TEST(Bound, Arithmetic) {
  ConstIntBound a{-3, 5}, b{2, 4}, open;
  EXPECT_EQ(a + b, (ConstIntBound{-1, 9}));
  EXPECT_EQ(a * b, (ConstIntBound{-12, 20}));
  EXPECT_EQ(floor_div(a, b), (ConstIntBound{-2, 2}));
  EXPECT_EQ(trunc_div(a, b), (ConstIntBound{-1, 2}));
  EXPECT_EQ(floor_mod(open, b), (ConstIntBound{0, 3}));
  EXPECT_EQ((ConstIntBound{0, ConstIntBound::kPosInf} + b).max_value, ConstIntBound::kPosInf);
  EXPECT_EQ(ModularSet::make(4, 3) + ModularSet::make(6, 2), (ModularSet{2, 1}));
  EXPECT_EQ(ModularSet::make(4, 1) * ModularSet::single(3), (ModularSet{12, 3}));
}

Expr element(const Ref<Buffer>& buffer, const Expr& index) {
  return make<BufferLoad>({.buffer = buffer, .indices = {index}, .predicate = {}});
}

TEST_F(AnalyzerTest, ElementsLieInTheDeclaredDomain) {
  Ref<Buffer> p = decl_buffer({m + 1}, DataType::int_(32), "P"), q = decl_buffer({m}, DataType::int_(32), "Q");
  assume(analyzer, BufferDomain{p, i32(0), n + 1, ValueOrder::kNone, {}});
  assume(analyzer, BufferDomain{q, i32(3), i32(9), ValueOrder::kNone, {}});
  EXPECT_TRUE(analyzer.can_prove(ge(element(p, i), i32(0))));
  EXPECT_TRUE(analyzer.can_prove(le(element(p, i), n)));
  EXPECT_TRUE(analyzer.can_prove(lt(element(p, i) * 4 + 3, n * 4 + 4)));
  EXPECT_FALSE(analyzer.can_prove(lt(element(p, i), n)));
  EXPECT_FALSE(analyzer.can_prove(le(element(p, i), element(p, i + 1))));
  EXPECT_EQ(analyzer.const_int_bound(element(q, i) * 2 - 1), (ConstIntBound{5, 15}));
  EXPECT_FALSE(analyzer.can_prove(ge(element(decl_buffer({m}, DataType::int_(32), "R"), i), i32(0))));
  // Ends beyond the type of the elements.
  Ref<Buffer> bytes = decl_buffer({m}, DataType::int_(8), "bytes"), wide = decl_buffer({m}, DataType::int_(64), "wide");
  assume(analyzer, BufferDomain{bytes, i32(3), i32(300), ValueOrder::kNone, {}});
  assume(analyzer, BufferDomain{wide, i32(0), n, ValueOrder::kNone, {}});
  EXPECT_EQ(analyzer.const_int_bound(element(bytes, i)), (ConstIntBound{3, 127}));
  EXPECT_TRUE(analyzer.can_prove(lt(element(wide, i), cast(DataType::int_(64), n))));
}

TEST_F(AnalyzerTest, AscendingElementsKeepTheirOrder) {
  Ref<Buffer> p = decl_buffer({m + 1}, DataType::int_(32), "P"), s = decl_buffer({m}, DataType::int_(32), "S");
  assume(analyzer, BufferDomain{p, i32(0), n + 1, ValueOrder::kNondecreasing, {}});
  assume(analyzer, BufferDomain{s, i32(0), n, ValueOrder::kIncreasing, {}});
  EXPECT_TRUE(analyzer.can_prove(ge(element(p, i + 1) - element(p, i), i32(0))));
  EXPECT_TRUE(analyzer.can_prove(le(element(p, i), element(p, i + 7))));
  EXPECT_FALSE(analyzer.can_prove(lt(element(p, i), element(p, i + 1))));
  EXPECT_FALSE(analyzer.can_prove(ge(element(p, i), element(p, i + 1))));
  EXPECT_TRUE(analyzer.can_prove(le(element(s, i) + 2, element(s, i + 2))));
  EXPECT_FALSE(analyzer.can_prove(le(element(s, i) + 3, element(s, i + 2))));
  // The nonzeros of a row are nonzeros.
  analyzer.bind(j, i32(0), element(p, i + 1) - element(p, i));
  EXPECT_TRUE(analyzer.can_prove(lt(element(p, i) + j, n)));
  EXPECT_TRUE(analyzer.can_prove(ge(element(p, i) + j, i32(0))));
  EXPECT_FALSE(analyzer.can_prove(lt(element(p, i) + j + 1, n)));
}

TEST_F(AnalyzerTest, AnOrderWithinSegmentsSaysNothingAcrossThem) {
  Ref<Buffer> p = decl_buffer({m + 1}, DataType::int_(32), "P"), c = decl_buffer({k}, DataType::int_(32), "C");
  assume(analyzer, BufferDomain{c, i32(0), n, ValueOrder::kIncreasing, p});
  EXPECT_FALSE(analyzer.can_prove(le(element(c, i), element(c, i + 1))));
  EXPECT_TRUE(analyzer.can_prove(lt(element(c, i), n)));
}

}  // namespace
}  // namespace tilewright::arith
