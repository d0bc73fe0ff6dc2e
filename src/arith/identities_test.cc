// Identities that must be proved for every random instance: completeness for a class of expressions. The tests of
// property_test.cc check soundness. Each instance is also evaluated, on both sides and simplified.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "arith/analyzer.h"
#include "arith/test_evaluator.h"

namespace tilewright::arith {
namespace {

struct Instance {
  Expr holds;                  ///< to be proved
  std::vector<Expr> assuming;  ///< facts about the variables
};

class Sampler {
 public:
  explicit Sampler(uint64_t seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  int pick(int n) { return static_cast<int>(number(0, n - 1)); }
  bool coin() { return pick(2) == 0; }
  Expr c(int64_t low, int64_t high) { return i32(static_cast<int32_t>(number(low, high))); }
  /// x, y + 3, 2 * x - z, ...
  Expr sum(const Expr& first, const Expr& second) {
    Expr result = first * c(1, 4);
    if (coin()) result = result + second * c(-3, 3);
    return coin() ? result + c(-9, 9) : result;
  }

 private:
  std::mt19937_64 random_;
};

class Identities : public ::testing::Test {
 protected:
  Expr x = var("x"), y = var("y"), z = var("z"), w = var("w");
  Expr p = var("p", DataType::bool_()), q = var("q", DataType::bool_());

  /// Each of `count` instances is proved, and true wherever its assumptions hold.
  void all(int count, const std::function<Instance(Sampler&)>& sample) {
    for (int seed = 1; seed <= count; ++seed) {
      Sampler d(static_cast<uint64_t>(seed));
      Instance instance = sample(d);
      Analyzer analyzer;
      for (const Expr& known : instance.assuming) analyzer.assume(known);
      std::string given;
      for (const Expr& known : instance.assuming) given += text(known) + " ";
      std::string what = "seed " + std::to_string(seed) + ": " + text(instance.holds) + " given " + given;
      EXPECT_TRUE(analyzer.can_prove(instance.holds)) << what << "-> " << text(analyzer.simplify(instance.holds));
      Expr left, right;
      if (const EQ* equal = instance.holds.as<EQ>()) {
        left = analyzer.simplify(equal->a);
        right = analyzer.simplify(equal->b);
      }
      int points = 0;
      for (int trial = 0; trial < 200; ++trial) {
        Env env;
        for (const Expr& v : {x, y, z, w}) env[v] = d.number(-20, 20);
        for (const Expr& v : {p, q}) env[v] = d.number(0, 1);
        bool inside = true;
        for (const Expr& known : instance.assuming) inside = inside && evaluate(known, env) == 1;
        auto value = inside ? evaluate(instance.holds, env) : std::nullopt;
        if (!value) continue;
        ++points;
        ASSERT_EQ(*value, 1) << what << "is false";
        if (!left.defined()) continue;
        const EQ& equal = *instance.holds.as<EQ>();
        ASSERT_EQ(evaluate(equal.a, env), evaluate(left, env)) << what << "-> " << text(left);
        ASSERT_EQ(evaluate(equal.b, env), evaluate(right, env)) << what << "-> " << text(right);
      }
      EXPECT_GT(points, 0) << what;
    }
  }
  Expr clamp(const Expr& e) { return min(e, i32(20)); }
};

TEST_F(Identities, TruncationOfKnownSign) {
  all(200, [&](Sampler& d) -> Instance {
    Expr c = d.c(2, 9);
    bool symbolic = d.coin(), negative = d.coin(), flipped = d.coin();
    Expr by = symbolic ? y : c;
    std::vector<Expr> known{negative ? le(x, i32(0)) : ge(x, i32(0)), gt(y, i32(0))};
    Expr divisor = flipped ? i32(0) - by : by;
    Expr magnitude = floordiv(negative ? i32(0) - x : x, by), rest = floormod(negative ? i32(0) - x : x, by);
    if (d.coin()) {
      return {eq(make<Div>({x, divisor}), negative != flipped ? i32(0) - magnitude : magnitude), known};
    }
    return {eq(make<Mod>({x, divisor}), negative ? i32(0) - rest : rest), known};
  });
}

TEST_F(Identities, TruncationOfAnySign) {
  all(200, [&](Sampler& d) -> Instance {
    Expr by = d.coin() ? y : Expr(d.c(2, 9)), c = d.c(2, 5), k = d.c(2, 5);
    std::vector<Expr> known{ne(y, i32(0))};
    auto quotient = [](const Expr& a, const Expr& b) { return Expr(make<Div>({a, b})); };
    auto rest = [](const Expr& a, const Expr& b) { return Expr(make<Mod>({a, b})); };
    switch (d.pick(6)) {
      case 0:
        return {eq(quotient(x, by) * by + rest(x, by), x), known};
      case 1:
        return {eq(x - rest(x, by), quotient(x, by) * by), known};
      case 2:
        return {eq(quotient(quotient(x, c), k), quotient(x, c * k)), known};
      case 3:
        return {eq(quotient(x * c, c * k), quotient(x, k)), known};
      case 4:
        return {eq(rest(rest(x, c * k), k), rest(x, k)), known};
      default:
        return {eq(quotient(x, i32(0) - c), i32(0) - quotient(x, c)), known};
    }
  });
}

TEST_F(Identities, DivisorsKnownPositive) {
  all(300, [&](Sampler& d) -> Instance {
    Expr n = d.coin() ? y : y * d.c(2, 4), a = d.sum(x, w);
    if (d.pick(4) == 0) n = y + d.c(1, 3);
    std::vector<Expr> known{gt(y, i32(0)), gt(z, i32(0))};
    Expr up = floordiv(a + n - 1, n) * n;
    const Expr times = d.c(1, 5), less = n * times - 1;
    switch (d.pick(14)) {
      case 0:
        return {eq(floordiv(a * n, n), a), known};
      case 11:
        return {eq(floormod(n * times, n), i32(0)), known};
      case 12:
        return {eq(floordiv(less, n) + 1, times), known};
      case 1:
        return {eq(floordiv(a + n * w, n), floordiv(a, n) + w), known};
      case 2:
        return {eq(floormod(a + n * w, n), floormod(a, n)), known};
      case 3:
        return {eq(floormod(a - floormod(a, n), n), i32(0)), known};
      case 4:
        return {eq(floormod(up, n), i32(0)), known};
      case 5:
        return {eq(floordiv(a, n) * n + floormod(a, n), a), known};
      case 6:
        return {eq(floordiv(a - floormod(a, n), n), floordiv(a, n)), known};
      case 7:
        return {eq(floormod(floormod(a, n) + z, n), floormod(a + z, n)), known};
      case 8:
        return {eq(floordiv(a * n, n * z), floordiv(a, z)), known};
      case 9:
        return {eq(floormod(a * n, n * z), floormod(a, z) * n), known};
      case 10:
        return {logical_and(le(a, up), lt(up, a + n)), known};
      default:
        return {logical_and(le(floordiv(a, n) * n, a), lt(a, (floordiv(a, n) + 1) * n)), known};
    }
  });
}

TEST_F(Identities, PaddedUp) {
  all(100, [&](Sampler& d) -> Instance {
    Expr n = d.coin() ? y : Expr(d.c(2, 9)), a = d.coin() ? x : x + d.c(-9, 9);
    std::vector<Expr> known{gt(y, i32(0))};
    Expr padded = a + floormod(i32(0) - a, n);
    switch (d.pick(3)) {
      case 0:
        return {eq(floormod(padded, n), i32(0)), known};
      case 1:
        return {eq(floordiv(padded, n), floordiv(a + n - 1, n)), known};
      default:
        return {eq(padded, floordiv(a + n - 1, n) * n), known};
    }
  });
}

TEST_F(Identities, DifferencesOfQuotients) {
  all(300, [&](Sampler& d) -> Instance {
    int64_t n = d.number(2, 9);
    Expr c = i32(static_cast<int32_t>(n)), a = d.sum(x, w);
    Expr by = d.pick(3) == 0 ? y : c, k = d.c(0, 12);
    std::vector<Expr> known{gt(y, i32(0))};
    switch (d.pick(4)) {
      case 0:
        return {eq(floordiv(a + k, by) - floordiv(a, by), floordiv(floormod(a, by) + k, by)), known};
      case 1:
        return {eq(floordiv(a + z, by) - floordiv(a, by), floordiv(floormod(a, by) + z, by)), known};
      case 2:
        return {eq(floordiv(x + 1, 2) - floordiv(x, 2), floormod(x, 2)), known};
      default:
        return {eq(floordiv(i32(0) - a, by), i32(0) - floordiv(a + by - 1, by)), known};
    }
  });
}

TEST_F(Identities, MinAndMaxUnderDivision) {
  all(200, [&](Sampler& d) -> Instance {
    int64_t g = d.number(2, 6), s = d.number(1, 4), t = d.number(1, 4);
    Expr c = i32(static_cast<int32_t>(g));
    Expr a = x * i32(static_cast<int32_t>(g * s)), b = y * i32(static_cast<int32_t>(g * t)) + c * d.c(-3, 3);
    bool least = d.coin();
    auto pick = [&](const Expr& u, const Expr& v) { return least ? min(u, v) : max(u, v); };
    switch (d.pick(5)) {
      case 0:
        return {eq(floordiv(pick(a, b), c), pick(floordiv(a, c), floordiv(b, c))), {}};
      case 1:
        return {eq(floormod(pick(a, b), c), i32(0)), {}};
      case 2:
        return {eq(floordiv(pick(a, b) + d.c(0, g - 1), c), pick(floordiv(a, c), floordiv(b, c))), {}};
      case 3:
        return {eq(floordiv(pick(x * z, w * z), z), pick(x, w)), {gt(z, i32(0))}};
      default:
        return {eq(pick(x, w) * z, pick(x * z, w * z)), {ge(z, i32(0))}};
    }
  });
}

TEST_F(Identities, MinTimesMax) {
  all(60, [&](Sampler& d) -> Instance {
    Expr a = d.sum(x, y), b = d.sum(z, w);
    Expr low = d.coin() ? min(a, b) : min(b, a), high = max(a, b);
    return {eq(d.coin() ? low * high : high * low * 3 - low * high * 2, a * b), {}};
  });
}

TEST_F(Identities, SelectsWithOneConditionMerge) {
  all(200, [&](Sampler& d) -> Instance {
    Expr c = d.coin() ? p : lt(x, d.c(-3, 3));
    Expr a = d.sum(x, y), b = d.sum(y, z), e = d.sum(z, w), f = d.sum(w, x), u = d.c(-3, 3);
    auto choose = [&](const Expr& t, const Expr& g) { return Expr(make<Select>({c, t, g})); };
    Expr opposite = make<Select>({logical_not(c), f, e});
    switch (d.pick(4)) {
      case 0:
        return {eq(choose(a, b) + choose(e, f), choose(a + e, b + f)), {}};
      case 1:
        return {eq(choose(a, b) * 2 - choose(e, f) * u, choose(a * 2 - e * u, b * 2 - f * u)), {}};
      case 2:
        return {eq(choose(a, b) + opposite, choose(a + e, b + f)), {}};
      default:
        return {eq(choose(i32(1), i32(0)) + make<Select>({logical_not(c), i32(1), i32(0)}), i32(1)), {}};
    }
  });
}

TEST_F(Identities, NestedConditionsJoin) {
  all(100, [&](Sampler& d) -> Instance {
    Expr a = d.sum(x, y), b = d.sum(z, w);
    bool call = d.coin();
    auto choose = [&](const Expr& c, const Expr& t, const Expr& f) {
      return call ? if_then_else(c, t, f) : Expr(make<Select>({c, t, f}));
    };
    switch (d.pick(3)) {
      case 0:
        return {eq(choose(p, choose(q, a, b), b), choose(logical_and(p, q), a, b)), {}};
      case 1:
        return {eq(choose(p, a, choose(q, a, b)), choose(logical_or(p, q), a, b)), {}};
      default:
        return {eq(choose(p, a, choose(logical_not(p), b, a * 7)), choose(p, a, b)), {}};
    }
  });
}

TEST_F(Identities, ProductsAgainstSums) {
  all(200, [&](Sampler& d) -> Instance {
    int64_t s = d.number(1, 4), t = d.number(1, 4), n = d.number(2, 20), m = d.number(2, 20);
    auto c = [](int64_t value) { return i32(static_cast<int32_t>(value)); };
    std::vector<Expr> above{ge(x, c(s)), ge(y, c(t))};
    switch (d.pick(5)) {
      case 0:  // (x - s) (y - t) >= 0
        return {le(x * c(t) + y * c(s), x * y + c(s * t)), above};
      case 1:
        return {le(x + y, x * y), {ge(x, c(s + 1)), ge(y, c(t + 1))}};
      case 2:
        return {le(x * y, c(n * m)), {ge(x, i32(0)), le(x, c(n)), ge(y, i32(0)), le(y, c(m))}};
      case 3:
        return {lt(x * y, z * w), {ge(x, i32(0)), lt(x, z), ge(y, i32(0)), lt(y, w)}};
      default:
        return {ge(x * x * c(s), i32(0)), {}};
    }
  });
}

TEST_F(Identities, QuotientsAgainstDividends) {
  all(200, [&](Sampler& d) -> Instance {
    Expr by = d.coin() ? y : Expr(d.c(2, 9));
    std::vector<Expr> known{gt(y, i32(0)), ge(x, i32(0))};
    switch (d.pick(5)) {
      case 0:
        return {le(floordiv(x, by), x), known};
      case 1:
        known.push_back(lt(x, z * by));
        return {lt(floordiv(x, by), z), known};
      case 2:
        return {le(min(w, z), floordiv(w + z, 2)), {}};
      case 3:
        return {le(floordiv(w, by) + floordiv(z, by), floordiv(w + z, by)), {gt(y, i32(0))}};
      default:
        return {logical_and(lt(make<Mod>({w, by}), by), lt(i32(0) - by, make<Mod>({w, by}))), {gt(y, i32(0))}};
    }
  });
}

/// One expression in int32 and in int64, with casts of either kind wherever they are allowed.
struct InBothTypes {
  Expr small, large;
};

InBothTypes sample_in_both(Sampler& d, const std::vector<InBothTypes>& leaves, int depth) {
  DataType i32_type = DataType::int_(32), i64_type = DataType::int_(64);
  if (depth == 0) return leaves[static_cast<size_t>(d.pick(static_cast<int>(leaves.size())))];
  InBothTypes a = sample_in_both(d, leaves, depth - 1), b = sample_in_both(d, leaves, depth - 1);
  auto c = static_cast<int32_t>(d.number(1, 9));
  InBothTypes result;
  switch (d.pick(5)) {
    case 0:
      result = {a.small + b.small, a.large + b.large};
      break;
    case 1:
      result = {a.small * c, a.large * c};
      break;
    case 2:
      result = {floordiv(a.small, c), floordiv(a.large, c)};
      break;
    case 3:
      result = {floormod(a.small, c), floormod(a.large, c)};
      break;
    default:
      result = {min(a.small, b.small), min(a.large, b.large)};
  }
  if (d.pick(3) == 0) result.small = make<Cast>({i32_type, result.large});
  if (d.pick(3) == 0) result.large = make<Cast>({i64_type, result.small});
  return result;
}

TEST(IndexTypes, CastsOfWhatFitsChangeNothing) {
  DataType i32_type = DataType::int_(32), i64_type = DataType::int_(64);
  Ref<Var> i = var("i", i64_type), j = var("j"), far = var("far", i64_type);
  auto cast_of = [](DataType type, const Expr& e) { return Expr(make<Cast>({type, e})); };
  std::vector<InBothTypes> near = {
      {cast_of(i32_type, i), i}, {j, cast_of(i64_type, j)}, {i32(3), int_imm(i64_type, 3)}};
  std::vector<InBothTypes> all = near;
  all.push_back({cast_of(i32_type, far), cast_of(i64_type, cast_of(i32_type, far))});
  int proved = 0;
  for (int seed = 1; seed <= 300; ++seed) {
    Sampler d(static_cast<uint64_t>(seed));
    Analyzer analyzer;
    analyzer.bind(i, range(int_imm(i64_type, 0), int_imm(i64_type, 40)));
    analyzer.bind(j, range(i32(-5), i32(30)));
    if (d.coin()) analyzer.bind(far, range(int_imm(i64_type, 7), int_imm(i64_type, int64_t{1} << 40)));
    InBothTypes both = sample_in_both(d, near, 3);
    proved += analyzer.can_prove_equal(cast_of(i64_type, both.small), both.large);
    // Arithmetic that wraps in a cast stays unchanged.
    Expr sampled = sample_in_both(d, all, 3).large, simple = analyzer.simplify(sampled);
    for (int trial = 0; trial < 50; ++trial) {
      Env env{{i, d.number(0, 39)}, {j, d.number(-5, 24)}, {far, d.number(7, int64_t{1} << 40)}};
      auto value = evaluate(sampled, env);
      if (!value) continue;
      ASSERT_EQ(evaluate(simple, env), value) << seed << ": " << text(sampled) << " -> " << text(simple);
    }
  }
  EXPECT_EQ(proved, 300);
}

TEST(Facts, OfIntrinsics) {
  Analyzer analyzer;
  DataType type = DataType::int_(32);
  Expr n = var("n"), scale = call(type, "vscale", {});
  EXPECT_TRUE(analyzer.can_prove(gt(scale, i32(0))));
  EXPECT_TRUE(analyzer.can_prove(lt(scale, scale * 4)));
  for (int bits : {8, 16, 32, 64}) {
    DataType of = DataType::int_(bits);
    for (int64_t value : {0, 1, 2, 5, 16, 127, -1, -128}) {
      Expr zeros = call(type, "clz", {int_imm(of, value)});
      int expected = 0;
      while (expected < bits && (static_cast<uint64_t>(value) >> (bits - 1 - expected) & 1) == 0) ++expected;
      EXPECT_EQ(const_int(analyzer.simplify(zeros)), expected) << bits << " " << value;
    }
    EXPECT_EQ(const_int(analyzer.simplify(make<Cast>({DataType::int_(64), int_imm(of, -3)}))), -3);
  }
  auto scope = analyzer.constraint(logical_and(ge(n, i32(9)), le(n, i32(64))));
  EXPECT_EQ(analyzer.const_int_bound(call(type, "clz", {n})), (ConstIntBound{25, 28}));
}

}  // namespace
}  // namespace tilewright::arith
