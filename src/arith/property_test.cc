// Random expressions, compared with evaluation. Seeds are fixed; a failure prints the expression and the point.
#include <gtest/gtest.h>

#include <random>

#include "arith/analyzer.h"
#include "arith/test_evaluator.h"
#include "ir/traverse.h"

namespace tilewright::arith {
namespace {

struct Domain {
  Ref<Var> var;
  int64_t min = 0, extent = 1;  ///< extent 0: every value of the type
};

class Generator {
 public:
  Generator(uint64_t seed, DataType type, bool extremes = false) : random_(seed), type_(type), extremes_(extremes) {}

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % uint64_t(high - low + 1));
  }

  Expr number(int depth) {
    if (depth == 0 || pick(8) == 0)
      return pick(3) ? Expr(domains[pick(static_cast<int>(domains.size()))].var) : literal();
    static constexpr int64_t kDivisors[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 32};
    auto divisor = [&]() -> Expr {
      if (extremes_ && pick(4) == 0) {
        int64_t d = extreme();
        return int_imm(type_, d == 0 ? 1 : d);
      }
      int64_t d = kDivisors[pick(10)];
      if (type_.is_int() && pick(10) == 0) d = -d;
      return int_imm(type_, d);
    };
    switch (pick(15)) {
      case 0:
      case 1:
      case 2:
        return make<Add>({number(depth - 1), number(depth - 1)});
      case 3:
        return make<Sub>({number(depth - 1), number(depth - 1)});
      case 4:
      case 5:
        return make<Mul>({number(depth - 1), divisor()});
      case 6:
      case 7:
        return make<FloorDiv>({number(depth - 1), divisor()});
      case 8:
      case 9:
        return make<FloorMod>({number(depth - 1), divisor()});
      case 10:
        return pick(2) ? Expr(make<Div>({number(depth - 1), divisor()}))
                       : Expr(make<Mod>({number(depth - 1), divisor()}));
      case 11:
        return make<Min>({number(depth - 1), number(depth - 1)});
      case 12:
        return make<Max>({number(depth - 1), number(depth - 1)});
      case 13:
        return make<Select>({condition(depth - 1), number(depth - 1), number(depth - 1)});
      default:
        return pick(3) ? Expr(make<Mul>({number(depth / 2), number(depth / 2)}))
                       : Expr(make<FloorDiv>({number(depth - 1), number(depth / 2)}));
    }
  }
  Expr condition(int depth) {
    if (depth <= 0) depth = 0;
    int d = depth == 0 ? 0 : depth - 1;
    switch (pick(depth == 0 ? 6 : 9)) {
      case 0:
        return make<LT>({number(d), number(d)});
      case 1:
        return make<LE>({number(d), number(d)});
      case 2:
        return make<GT>({number(d), number(d)});
      case 3:
        return make<GE>({number(d), number(d)});
      case 4:
        return make<EQ>({number(d), number(d)});
      case 5:
        return make<NE>({number(d), number(d)});
      case 6:
        return make<And>({condition(d), condition(d)});
      case 7:
        return make<Or>({condition(d), condition(d)});
      default:
        return make<Not>({condition(d)});
    }
  }
  /// A value near an end of the type, or near 0.
  int64_t extreme() {
    int64_t off = pick(4) ? between(0, 3) : between(0, 40);
    switch (pick(4)) {
      case 0:
        return wrap_int(type_, int_min(type_) + off);
      case 1:
        return wrap_int(type_,
                        static_cast<int64_t>(static_cast<uint64_t>(int_max(type_)) - static_cast<uint64_t>(off)));
      case 2:
        return wrap_int(type_,
                        static_cast<int64_t>(static_cast<uint64_t>(int_max(type_) / 2) + static_cast<uint64_t>(off)));
      default:
        return wrap_int(type_, pick(2) ? off : -off);
    }
  }
  Expr literal() {
    if (extremes_ && pick(2)) return int_imm(type_, extreme());
    int64_t value = pick(4) ? between(-4, 9) : between(-70, 130);
    return int_imm(type_, wrap_int(type_, value));
  }

  std::vector<Domain> domains;

 private:
  std::mt19937_64 random_;
  DataType type_;
  bool extremes_;
};

/// A domain for each of three variables, some around 0, some far off.
void choose_domains(Generator& g, Analyzer& analyzer, DataType type) {
  for (const char* name : {"i", "j", "k"}) {
    Domain d;
    d.var = var(name, type);
    d.min = g.pick(3) ? 0 : type.is_uint() ? g.between(0, 40) : g.between(-40, 40);
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 8, 12, 16, 32, 33};
    d.extent = kExtents[g.pick(9)];
    analyzer.bind(d.var, make<Range>({int_imm(type, d.min), int_imm(type, d.extent)}));
    g.domains.push_back(d);
  }
}

Env random_point(Generator& g) {
  Env env;
  for (const Domain& d : g.domains) {
    int64_t value = g.between(d.min, d.min + d.extent - 1);
    if (g.pick(6) == 0) value = d.min;
    if (g.pick(6) == 0) value = d.min + d.extent - 1;
    env[d.var] = value;
  }
  return env;
}

/// Variables without a domain, or with one at an end of the type.
void choose_extreme_domains(Generator& g, Analyzer& analyzer, DataType type) {
  for (const char* name : {"i", "j", "k"}) {
    Domain d;
    d.var = var(name, type);
    d.extent = g.pick(3) ? 0 : g.between(1, 9);
    bool low = g.pick(2);
    // The end of a domain is a value of its type too.
    d.min = low ? int_min(type) : wrap_int(type, int_max(type) - d.extent);
    if (d.extent > 0) analyzer.bind(d.var, make<Range>({int_imm(type, d.min), int_imm(type, d.extent)}));
    g.domains.push_back(d);
  }
}

Env extreme_point(Generator& g) {
  Env env;
  for (const Domain& d : g.domains) {
    env[d.var] = d.extent > 0 ? d.min + g.between(0, d.extent - 1) : g.extreme();
  }
  return env;
}

/// Ends that stand for "not known" hold every value, also those beyond them.
bool contains(const ConstIntBound& bound, DataType type, int64_t value) {
  if (type.is_uint() && value < 0) return !bound.has_max();
  return bound.contains(std::max(value, ConstIntBound::kNegInf));
}

bool in_class(const ModularSet& set, DataType type, int64_t value) {
  bool big = type.is_uint() && value < 0;
  if (set.coeff == 0) return !big && value == set.base;
  auto rest = big ? static_cast<int64_t>(static_cast<uint64_t>(value) % static_cast<uint64_t>(set.coeff))
                  : floor_mod(value, set.coeff);
  return rest == set.base;
}

std::string describe(const Env& env, const std::vector<Domain>& domains) {
  std::string result;
  for (const Domain& d : domains) {
    result += d.var->name_hint + "=" + std::to_string(env.at(d.var)) + " in [" + std::to_string(d.min) + ", " +
              std::to_string(d.min + d.extent) + ") ";
  }
  return result;
}

void check(uint64_t seed, DataType type, bool logical, bool extremes = false) {
  Generator g(seed, type, extremes);
  Analyzer analyzer;
  (extremes ? choose_extreme_domains : choose_domains)(g, analyzer, type);
  std::optional<Analyzer::Scope> scope;
  Expr assumed = bool_imm(true);
  if (g.pick(2)) assumed = g.condition(2);
  // Known before the constraint, so that nothing remembered outlives it by mistake.
  Expr e = logical ? g.condition(4) : g.number(5);
  analyzer.simplify(e);
  scope.emplace(analyzer.constraint(assumed));
  Expr simple = analyzer.simplify(e);
  ConstIntBound bound = analyzer.const_int_bound(e);
  ModularSet residues = analyzer.modular_set(e);
  bool proved = logical && analyzer.can_prove(e);
  ASSERT_EQ(simple.dtype(), e.dtype());
  int points = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Env env = extremes ? extreme_point(g) : random_point(g);
    auto holds = evaluate(assumed, env);
    if (!holds || !*holds) continue;
    auto before = evaluate(e, env);
    if (!before) continue;
    ++points;
    auto after = evaluate(simple, env);
    std::string where = "seed " + std::to_string(seed) + ": " + text(e) + "\n  -> " + text(simple) + "\n  at " +
                        describe(env, g.domains) + " given " + text(assumed);
    ASSERT_TRUE(after.has_value()) << where << "\n  was " << *before << ", now undefined";
    ASSERT_EQ(*before, *after) << where;
    ASSERT_TRUE(contains(bound, e.dtype(), *before))
        << where << "\n  " << *before << " not in [" << bound.min_value << ", " << bound.max_value << "]";
    ASSERT_TRUE(in_class(residues, e.dtype(), *before))
        << where << "\n  value " << *before << " not " << residues.base << " modulo " << residues.coeff;
    if (proved) {
      ASSERT_EQ(*before, 1) << where << " was proved";
    }
  }
  if (points > 0) {
    Expr again = analyzer.simplify(simple);
    EXPECT_TRUE(analyzer.can_prove_equal(simple, e) || !type.is_int() || type.bits < 32 || logical)
        << "seed " << seed << ": " << text(e) << " vs " << text(simple);
    (void)again;
  }
}

TEST(Property, IndexNumbers) {
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    check(seed, DataType::int_(32), false);
    if (HasFatalFailure()) return;
  }
}
TEST(Property, IndexConditions) {
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    check(100000 + seed, DataType::int_(64), true);
    if (HasFatalFailure()) return;
  }
}
TEST(Property, NarrowIntegersWrap) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    check(200000 + seed, DataType::int_(8), seed % 2);
    if (HasFatalFailure()) return;
  }
}
TEST(Property, UnsignedIntegersWrap) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    check(300000 + seed, DataType::uint(8 << (seed % 3)), seed % 2);
    if (HasFatalFailure()) return;
  }
}

/// Types whose arithmetic wraps; that of indices, int32 and int64, has no overflow.
TEST(Property, ExtremeValues) {
  const DataType types[] = {DataType::int_(8),  DataType::int_(16), DataType::uint(8),
                            DataType::uint(16), DataType::uint(32), DataType::uint(64)};
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    check(500000 + seed, types[seed % 6], seed % 12 < 6, true);
    if (HasFatalFailure()) return;
  }
}

using Wide = __int128;

bool is_value_of(Wide value, DataType type) { return value >= int_min(type) && value <= int_max(type); }

/// As code computes it: sums and products wrap, which is harmless as long as the value that a division, a comparison,
/// ... takes of them is one of the type. Nothing where it is not, where a divisor is 0, or beyond 128 bits.
std::optional<Wide> exact(const Expr& e, const Env& env) {
  if (BinaryOperands operands = binary_operands(e); operands && !e.dtype().is_bool()) {
    auto a = exact(*operands.a, env), b = exact(*operands.b, env);
    if (!a || !b) return std::nullopt;
    Wide result;
    if (e.is<Add>()) return __builtin_add_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
    if (e.is<Sub>()) return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
    if (e.is<Mul>()) return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
    if (!is_value_of(*a, e.dtype()) || !is_value_of(*b, e.dtype())) return std::nullopt;
    Env known;
    Ref<Var> x = var("x", e.dtype()), y = var("y", e.dtype());
    known[x] = static_cast<int64_t>(*a);
    known[y] = static_cast<int64_t>(*b);
    return evaluate(binary(e.kind(), x, y), known);
  }
  if (BinaryOperands operands = binary_operands(e); operands && !operands.a->dtype().is_bool()) {
    auto a = exact(*operands.a, env), b = exact(*operands.b, env);
    DataType type = operands.a->dtype();
    if (!a || !b || !is_value_of(*a, type) || !is_value_of(*b, type)) return std::nullopt;
    return e.is<LT>() ? *a < *b : e.is<LE>() ? *a <= *b : e.is<EQ>() ? *a == *b : *a != *b;
  }
  if (const And* node = e.as<And>()) {
    auto a = exact(node->a, env);
    return !a || *a == 0 ? a : exact(node->b, env);
  }
  if (const Or* node = e.as<Or>()) {
    auto a = exact(node->a, env);
    return !a || *a != 0 ? a : exact(node->b, env);
  }
  if (const Not* node = e.as<Not>()) {
    auto a = exact(node->a, env);
    return a ? std::optional<Wide>(*a == 0) : a;
  }
  if (const Select* node = e.as<Select>()) {
    auto c = exact(node->condition, env);
    return c ? exact(*c != 0 ? node->true_value : node->false_value, env) : c;
  }
  if (auto value = evaluate(e, env)) return Wide{*value};
  return std::nullopt;
}

/// Whether no partial sum of the terms of a sum leaves the type, in the sum and in all operands: what the contract
/// excludes.
bool sums_stay_inside(const Expr& e, const Env& env) {
  Wide positive = 0, negative = 0;
  bool inside = true;
  auto gather = [&](auto& self, const Expr& term, Wide scale) -> void {
    if (term.is<Add>() || term.is<Sub>()) {
      BinaryOperands operands = binary_operands(term);
      self(self, *operands.a, scale);
      return self(self, *operands.b, term.is<Sub>() ? -scale : scale);
    }
    if (const Mul* mul = term.as<Mul>(); mul && mul->b.is<IntImm>()) {
      if (__builtin_mul_overflow(scale, Wide{mul->b.as<IntImm>()->value}, &scale)) {
        inside = false;
        return;
      }
      return self(self, mul->a, scale);
    }
    auto value = exact(term, env);
    Wide part = 0;
    if (!value || __builtin_mul_overflow(*value, scale, &part)) {
      inside = false;
      return;
    }
    inside = inside && is_value_of(part, e.dtype());
    (part < 0 ? negative : positive) += part;
    for_each_child(term, [&](const NodeRef& child, Role) {
      if (child.sort() == Sort::kExpr) inside = inside && sums_stay_inside(Expr(child), env);
    });
  };
  if (e.dtype().is_bool()) {
    for_each_child(e, [&](const NodeRef& child, Role) { inside = inside && sums_stay_inside(Expr(child), env); });
    return inside;
  }
  gather(gather, e, 1);
  return inside && is_value_of(positive, e.dtype()) && is_value_of(negative, e.dtype());
}

/// Near the ends of int32 and int64: a simplified form computes the same wherever the given one leaves the type in no
/// sum. Variables of which no range is known stay away from the ends, by the contract.
TEST(Property, IndexNumbersNearTheEnds) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 8000; ++seed) {
    DataType type = DataType::int_(seed % 2 ? 32 : 64);
    bool logical = seed % 4 < 1;
    Generator g(600000 + seed, type);
    Analyzer analyzer;
    for (const char* name : {"i", "j", "k"}) {
      Domain d;
      d.var = var(name, type);
      d.extent = g.pick(4) ? g.between(1, 9) : 0;
      switch (g.pick(3)) {
        case 0:
          d.min = int_min(type);
          break;
        case 1:
          d.min = int_max(type) - d.extent;
          break;
        default:
          d.min = g.between(-5, 5);
      }
      if (d.extent > 0) analyzer.bind(d.var, make<Range>({int_imm(type, d.min), int_imm(type, d.extent)}));
      g.domains.push_back(d);
    }
    Expr e = logical ? g.condition(3) : g.number(4);
    Expr simple = analyzer.simplify(e);
    for (int trial = 0; trial < 30; ++trial) {
      Env env;
      for (const Domain& d : g.domains) {
        env[d.var] = d.extent > 0 ? d.min + g.between(0, d.extent - 1) : g.between(-1000000, 1000000);
      }
      auto before = evaluate(e, env);
      if (!before || !sums_stay_inside(e, env)) continue;
      ++compared;
      auto after = exact(simple, env);
      std::string where = "seed " + std::to_string(seed) + ": " + text(e) + "\n  -> " + text(simple) + "\n  at " +
                          describe(env, g.domains);
      ASSERT_TRUE(after.has_value()) << where << "\n  was " << *before << ", now leaves the type";
      ASSERT_TRUE(*after == *before) << where;
    }
  }
  EXPECT_GT(compared, 20000);
}

/// The scalar expression that one lane of a vector computes.
Expr at_lane(const Expr& e, int64_t lane) {
  if (e.dtype().is_scalar()) return e;
  if (const Broadcast* b = e.as<Broadcast>()) return b->value;
  if (const Ramp* r = e.as<Ramp>()) return r->base + r->stride * int_imm(r->stride.dtype(), lane);
  if (const Not* n = e.as<Not>()) return make<Not>({at_lane(n->a, lane)});
  if (const Select* s = e.as<Select>()) {
    return make<Select>({at_lane(s->condition, lane), at_lane(s->true_value, lane), at_lane(s->false_value, lane)});
  }
#define TW_OP(Name) \
  if (const Name* n = e.as<Name>()) return make<Name>({at_lane(n->a, lane), at_lane(n->b, lane)});
  TW_OP(Add)
  TW_OP(Sub)
  TW_OP(Mul)
  TW_OP(FloorDiv)
  TW_OP(FloorMod)
  TW_OP(Min)
  TW_OP(Max)
  TW_OP(LT)
  TW_OP(LE)
  TW_OP(EQ)
  TW_OP(NE)
  TW_OP(And)
  TW_OP(Or)
#undef TW_OP
  return {};
}

/// Vectors of ramps and broadcasts, checked lane by lane.
TEST(Property, Vectors) {
  constexpr int kLanes = 4;
  int lifted = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Generator g(400000 + seed, DataType::int_(32));
    Analyzer analyzer;
    choose_domains(g, analyzer, DataType::int_(32));
    auto vector = [&](auto& self, int depth) -> Expr {
      if (depth == 0) {
        Expr scalar = g.number(2);
        static constexpr int64_t kStrides[] = {1, 1, 2, 4, -1, 3};
        return g.pick(2) ? ramp(scalar, i32(kStrides[g.pick(6)]), kLanes) : broadcast(scalar, kLanes);
      }
      static constexpr int64_t kDivisors[] = {1, 2, 4, 8, 16, 3};
      Expr divisor = broadcast(i32(kDivisors[g.pick(6)]), kLanes);
      switch (g.pick(7)) {
        case 0:
          return make<Add>({self(self, depth - 1), self(self, depth - 1)});
        case 1:
          return make<Sub>({self(self, depth - 1), self(self, depth - 1)});
        case 2:
          return make<Mul>({self(self, depth - 1), divisor});
        case 3:
          return make<FloorDiv>({self(self, depth - 1), divisor});
        case 4:
          return make<FloorMod>({self(self, depth - 1), divisor});
        case 5:
          return make<Min>({self(self, depth - 1), self(self, depth - 1)});
        default:
          return make<Max>({self(self, depth - 1), self(self, depth - 1)});
      }
    };
    Expr a = vector(vector, 2), b = vector(vector, 1);
    Expr e = a;
    if (g.pick(3) == 0) e = g.pick(2) ? Expr(make<LT>({a, b})) : Expr(make<NE>({a, b}));
    Expr simple = analyzer.simplify(e);
    ConstIntBound bound = analyzer.const_int_bound(e);
    ASSERT_EQ(simple.dtype(), e.dtype());
    lifted += simple.is<Ramp>() || simple.is<Broadcast>();
    for (int trial = 0; trial < 15; ++trial) {
      Env env = random_point(g);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        auto before = evaluate(at_lane(e, lane), env), after = evaluate(at_lane(simple, lane), env);
        if (!before) continue;
        ASSERT_EQ(before, after) << "seed " << seed << " lane " << lane << ": " << text(e) << "\n  -> " << text(simple);
        ASSERT_TRUE(bound.contains(*before)) << "seed " << seed << ": " << text(e);
      }
    }
  }
  EXPECT_GT(lifted, 1000);
}

}  // namespace
}  // namespace tilewright::arith
