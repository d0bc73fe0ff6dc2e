// Every rule on all small integers, at the limits of 32 and 64 bits, and wrapping in 8 bits.
#include "arith/rules.h"

#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "arith/test_evaluator.h"
#include "ir/structural.h"
#include "ir/traverse.h"

namespace tilewright::arith {
namespace {

/// The rule with its variables in another type.
Expr in_type(const Expr& e, DataType type, std::unordered_map<NodeRef, Expr>& vars) {
  if (e.is<Var>()) {
    Expr& v = vars[e];
    if (!v.defined()) v = e.dtype().is_bool() ? e : Expr(var(e.as<Var>()->name_hint, type));
    return v;
  }
  if (const IntImm* imm = e.as<IntImm>())
    return imm->dtype.is_bool() ? e : Expr(int_imm(type, wrap_int(type, imm->value)));
  if (const Not* n = e.as<Not>()) return make<Not>({in_type(n->a, type, vars)});
  if (const Select* s = e.as<Select>()) {
    return make<Select>(
        {in_type(s->condition, type, vars), in_type(s->true_value, type, vars), in_type(s->false_value, type, vars)});
  }
#define TW_OP(Name) \
  if (const Name* n = e.as<Name>()) return make<Name>({in_type(n->a, type, vars), in_type(n->b, type, vars)});
  TW_BINARY_KINDS(TW_OP)
#undef TW_OP
  return e;
}

/// Constant parts of a replacement are computed before the rule applies; one that does not fit its type stops it.
bool constants_fit(const Expr& e, const Env& env, const RuleVars& vars, std::unordered_map<NodeRef, Expr>& typed) {
  bool fit = true, constant = true;
  auto visit_all = [&](auto& self, const Expr& node) -> bool {  // returns: made of constants only
    if (node.is<IntImm>()) return true;
    if (node.is<Var>()) {
      for (const Expr& c : {vars.c0, vars.c1, vars.c2}) {
        if (typed.contains(c) && typed[c] == node) return true;
      }
      return false;
    }
    bool all = true;
    for_each_child(node, [&](const NodeRef& child, Role) { all = self(self, Expr(child)) && all; });
    if (all && !evaluate(node, env)) fit = false;
    return all;
  };
  constant = visit_all(visit_all, e);
  return fit || constant;
}

struct Count {
  size_t tried = 0, applied = 0;
};

void check_rule(const Rule& rule, DataType type, const std::vector<int64_t>& values, Count& count) {
  const RuleVars& vars = rule_vars();
  std::unordered_map<NodeRef, Expr> typed;
  Expr pattern = in_type(rule.pattern, type, typed);
  Expr replacement = in_type(rule.replacement, type, typed);
  Expr guard = rule.guard.defined() ? in_type(rule.guard, type, typed) : Expr();
  std::vector<Expr> free;
  for (const Expr& v : vars.all()) {
    if (typed.contains(v)) free.push_back(typed[v]);
  }
  Env env;
  auto step = [&](auto& self, size_t at) -> bool {
    if (at == free.size()) {
      ++count.tried;
      auto before = evaluate(pattern, env);
      if (!before) return true;  // the contract excludes it
      if (guard.defined()) {
        auto holds = evaluate(guard, env);
        if (!holds || !*holds) return true;
      }
      if (!constants_fit(replacement, env, vars, typed)) return true;
      ++count.applied;
      auto after = evaluate(replacement, env);
      if (after == before) return true;
      std::string point;
      for (const Expr& v : free) point += " " + v.as<Var>()->name_hint + "=" + std::to_string(env.at(v));
      ADD_FAILURE() << type.str() << ": " << text(pattern) << " -> " << text(replacement) << " at" << point << ": "
                    << *before << " became " << (after ? std::to_string(*after) : "undefined");
      return false;
    }
    if (free[at].dtype().is_bool()) {
      for (int64_t v : {0, 1}) {
        env[free[at]] = v;
        if (!self(self, at + 1)) return false;
      }
      return true;
    }
    for (int64_t v : values) {
      env[free[at]] = wrap_int(type, v);
      if (!self(self, at + 1)) return false;
    }
    return true;
  };
  step(step, 0);
}

size_t integers_of(const Rule& rule) {
  std::unordered_map<NodeRef, Expr> typed;
  in_type(rule.pattern, DataType::int_(32), typed);
  size_t count = 0;
  for (const auto& [node, v] : typed) count += !v.dtype().is_bool();
  return count;
}

std::vector<int64_t> around_zero(int64_t reach) {
  std::vector<int64_t> values;
  for (int64_t v = -reach; v <= reach; ++v) values.push_back(v);
  return values;
}

/// Values at both ends of the type and around 0.
std::vector<int64_t> limits(DataType type, bool few) {
  int64_t low = int_min(type), high = int_max(type);
  if (few) return {low, low + 1, -1, 0, 1, 2, high};
  return {low, low + 1, low / 2, -3, -2, -1, 0, 1, 2, 3, high / 2, high - 1, high};
}

TEST(Rules, HoldOnSmallIntegers) {
  for (const Rule& rule : rewrite_rules()) {
    Count count;
    size_t vars = integers_of(rule);
    if (rule.domain & kIndexRule) check_rule(rule, DataType::int_(32), around_zero(vars <= 4 ? 8 : 3), count);
    if (rule.domain & kWrappingRule) check_rule(rule, DataType::int_(8), around_zero(vars <= 4 ? 8 : 3), count);
    EXPECT_GT(count.applied, 0u) << text(rule.pattern) << " never applies";
  }
}

TEST(Rules, HoldAtTheLimitsOfTheTypes) {
  for (const Rule& rule : rewrite_rules()) {
    Count count;
    bool few = integers_of(rule) > 3;
    if (rule.domain & kIndexRule) {
      check_rule(rule, DataType::int_(32), limits(DataType::int_(32), few), count);
      check_rule(rule, DataType::int_(64), limits(DataType::int_(64), few), count);
    }
    if (rule.domain & kWrappingRule) {
      for (DataType type : {DataType::int_(8), DataType::uint(8), DataType::uint(32), DataType::uint(64)}) {
        std::vector<int64_t> values =
            type.is_uint() ? std::vector<int64_t>{0, 1, 2, 3, 127, 128, 254, 255, -1} : limits(type, few);
        if (few) values = {0, 1, 2, 127, 128, -1};
        check_rule(rule, type, values, count);
      }
      // Wrapping in the index types themselves, for values that are data.
      continue;
    }
  }
}

/// Each rule is reached: its own pattern, given to an analyzer that knows nothing, is found equal to its replacement.
TEST(Rules, TheAnalyzerUsesThem) {
  size_t logic = 0;
  for (const Rule& rule : rewrite_rules()) {
    if (rule.guard.defined() || !(rule.domain & kIndexRule)) continue;
    const RuleVars& vars = rule_vars();
    bool constants = false;
    std::unordered_map<NodeRef, Expr> typed;
    in_type(rule.pattern, DataType::int_(32), typed);
    for (const Expr& c : {vars.c0, vars.c1, vars.c2}) constants |= typed.contains(c);
    if (constants) continue;
    Analyzer analyzer;
    Expr simple = analyzer.simplify(rule.pattern), wanted = analyzer.simplify(rule.replacement);
    EXPECT_TRUE(analyzer.can_prove_equal(simple, wanted)) << text(rule.pattern) << " gave " << text(simple);
    ++logic;
  }
  EXPECT_GT(logic, 50u);
}

TEST(Rules, AreIndexedByTheirRoot) {
  EXPECT_GT(rewrite_rules().size(), 140u);
  for (Kind kind : {Kind::kMin, Kind::kMax, Kind::kSelect, Kind::kLT, Kind::kLE, Kind::kEQ, Kind::kAnd, Kind::kOr}) {
    EXPECT_FALSE(rules_with_root(kind).empty());
    for (const CompiledRule& rule : rules_with_root(kind)) EXPECT_EQ(rule.rule->pattern.kind(), kind);
  }
  EXPECT_TRUE(rules_with_root(Kind::kVar).empty());
}

TEST(Rules, Examples) {
  Analyzer analyzer;
  Expr x = var("x"), y = var("y");
  auto expect = [&](const Expr& e, const Expr& wanted) {
    Expr got = analyzer.simplify(e);
    EXPECT_TRUE(same_expr(got, wanted)) << text(e) << " gave " << text(got);
  };
  expect(min(min(x, i32(5)), i32(3)), min(x, i32(3)));
  expect(lt(floordiv(x, 8), i32(4)), lt(x, i32(32)));
  expect(min(floordiv(x, 4), floordiv(y, 4)), floordiv(min(x, y), 4));
  expect(select(lt(x, y), x, y), min(x, y));
  expect(logical_or(lt(x, y), eq(x, y)), le(x, y));
  Ref<Var> u = var("u", DataType::uint(8));
  expect((u + 250) + 10, u + 4);
  expect(u * 3 + u, u * 4);
  Ref<Var> f = var("f", DataType::float_(32)), g = var("g", DataType::float_(32));
  Expr fmin = min(max(f, g), f);  // NaN: no rule
  EXPECT_TRUE(analyzer.simplify(fmin) == fmin);
}

}  // namespace
}  // namespace tilewright::arith
