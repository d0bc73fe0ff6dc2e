#include "arith/rules.h"

#include "ir/build.h"
#include "support/diagnostic.h"
#include "support/ranges.h"

namespace tilewright::arith {

RuleVars::RuleVars()
    : x(var("x")),
      y(var("y")),
      z(var("z")),
      w(var("w")),
      c0(var("c0")),
      c1(var("c1")),
      c2(var("c2")),
      b0(var("b0", DataType::bool_())),
      b1(var("b1", DataType::bool_())),
      b2(var("b2", DataType::bool_())) {}

const RuleVars& rule_vars() {
  static const RuleVars* vars = new RuleVars;  // leaked: patterns may be used during static destruction
  return *vars;
}

namespace {

using Rules = std::vector<Rule>;

/// A node as it stands: the operators of ir/build.h drop x + 0 and the like, which these patterns are about.
template <class T>
Expr raw(const Expr& a, const Expr& b) {
  return make<T>({a, b});
}
Expr pick(const Expr& c, const Expr& t, const Expr& f) { return make<Select>({c, t, f}); }

void add_min_max(Rules& rules) {
  const auto& [x, y, z, w, c0, c1, c2, b0, b1, b2] = rule_vars();
  Expr zero = i32(0);
  const Rules list = {
      // constants meet
      {min(min(x, c0), c1), min(x, min(c0, c1)), {}, kIntegerRule},
      {max(max(x, c0), c1), max(x, max(c0, c1)), {}, kIntegerRule},
      {min(max(x, c0), c1), c1, le(c1, c0), kIntegerRule},
      {max(min(x, c0), c1), c1, ge(c1, c0), kIntegerRule},
      {max(min(x, c0), c1), min(max(x, c1), c0), lt(c1, c0), kIntegerRule},
      // absorption
      {min(min(x, y), x), min(x, y), {}, kIntegerRule},
      {max(max(x, y), x), max(x, y), {}, kIntegerRule},
      {min(max(x, y), x), x, {}, kIntegerRule},
      {max(min(x, y), x), x, {}, kIntegerRule},
      {min(min(min(x, y), z), y), min(min(x, y), z), {}, kIntegerRule},
      {max(max(max(x, y), z), y), max(max(x, y), z), {}, kIntegerRule},
      {min(max(x, y), min(x, z)), min(x, z), {}, kIntegerRule},
      {max(min(x, y), max(x, z)), max(x, z), {}, kIntegerRule},
      {min(max(x, y), min(x, y)), min(x, y), {}, kIntegerRule},
      {max(min(x, y), max(x, y)), max(x, y), {}, kIntegerRule},
      // a shared operand goes out
      {min(min(x, y), min(x, z)), min(min(y, z), x), {}, kIntegerRule},
      {max(max(x, y), max(x, z)), max(max(y, z), x), {}, kIntegerRule},
      {min(max(x, y), max(x, z)), max(min(y, z), x), {}, kIntegerRule},
      {max(min(x, y), min(x, z)), min(max(y, z), x), {}, kIntegerRule},
      // monotonic operators go out
      {min(x * c0, y * c0), min(x, y) * c0, gt(c0, zero)},
      {max(x * c0, y * c0), max(x, y) * c0, gt(c0, zero)},
      {min(x * c0, y * c0), max(x, y) * c0, lt(c0, zero)},
      {max(x * c0, y * c0), min(x, y) * c0, lt(c0, zero)},
      {min(x * c0, c1), min(x, floordiv(c1, c0)) * c0, logical_and(gt(c0, zero), eq(floormod(c1, c0), zero))},
      {max(x * c0, c1), max(x, floordiv(c1, c0)) * c0, logical_and(gt(c0, zero), eq(floormod(c1, c0), zero))},
      {min(x * c0, c1), max(x, floordiv(c1, c0)) * c0, logical_and(lt(c0, zero), eq(floormod(c1, c0), zero))},
      {max(x * c0, c1), min(x, floordiv(c1, c0)) * c0, logical_and(lt(c0, zero), eq(floormod(c1, c0), zero))},
      {min(x * z, y * z), min(x, y) * z, ge(z, zero)},
      {max(x * z, y * z), max(x, y) * z, ge(z, zero)},
      {min(x * z, y * z), max(x, y) * z, le(z, zero)},
      {max(x * z, y * z), min(x, y) * z, le(z, zero)},
      {min(floordiv(x, c0), floordiv(y, c0)), floordiv(min(x, y), c0), gt(c0, zero), kIntegerRule},
      {max(floordiv(x, c0), floordiv(y, c0)), floordiv(max(x, y), c0), gt(c0, zero), kIntegerRule},
      {min(floordiv(x, c0), floordiv(y, c0)), floordiv(max(x, y), c0), lt(c0, zero)},
      {max(floordiv(x, c0), floordiv(y, c0)), floordiv(min(x, y), c0), lt(c0, zero)},
      {min(truncdiv(x, c0), truncdiv(y, c0)), truncdiv(min(x, y), c0), gt(c0, zero), kIntegerRule},
      {max(truncdiv(x, c0), truncdiv(y, c0)), truncdiv(max(x, y), c0), gt(c0, zero), kIntegerRule},
      // shifts by constants go out
      {min(x + c0, c1), min(x, c1 - c0) + c0},
      {max(x + c0, c1), max(x, c1 - c0) + c0},
      {min(x - c0, c1), min(x, c1 + c0) - c0},
      {max(x - c0, c1), max(x, c1 + c0) - c0},
      {min(c0 - x, c1), c0 - max(x, c0 - c1)},
      {max(c0 - x, c1), c0 - min(x, c0 - c1)},
      {min(c0 - x, c1 - y), c0 - max(x, y), eq(c0, c1)},
      {max(c0 - x, c1 - y), c0 - min(x, y), eq(c0, c1)},
      {min(x * -1, y * -1), max(x, y) * -1},
      // one condition
      {min(pick(b0, x, y), pick(b0, z, w)), pick(b0, min(x, z), min(y, w)), {}, kAnyRule},
      {max(pick(b0, x, y), pick(b0, z, w)), pick(b0, max(x, z), max(y, w)), {}, kAnyRule},
  };
  append_range(rules, list);
}

void add_select(Rules& rules) {
  const auto& [x, y, z, w, c0, c1, c2, b0, b1, b2] = rule_vars();
  const Rules list = {
      {pick(logical_not(b0), x, y), pick(b0, y, x), {}, kAnyRule},
      {pick(b0, pick(b1, x, y), y), pick(logical_and(b0, b1), x, y), {}, kAnyRule},
      {pick(b0, pick(b1, y, x), y), pick(logical_and(b0, logical_not(b1)), x, y), {}, kAnyRule},
      {pick(b0, x, pick(b1, x, y)), pick(logical_or(b0, b1), x, y), {}, kAnyRule},
      {pick(b0, x, pick(b1, y, x)), pick(logical_or(b0, logical_not(b1)), x, y), {}, kAnyRule},
      {pick(b0, pick(b1, x, y), pick(b1, x, z)), pick(b1, x, pick(b0, y, z)), {}, kAnyRule},
      {pick(lt(x, y), x, y), min(x, y), {}, kIntegerRule},
      {pick(lt(x, y), y, x), max(x, y), {}, kIntegerRule},
      {pick(le(x, y), x, y), min(x, y), {}, kIntegerRule},
      {pick(le(x, y), y, x), max(x, y), {}, kIntegerRule},
      {pick(eq(x, y), x, y), y, {}, kIntegerRule},
      {pick(eq(x, y), y, x), x, {}, kIntegerRule},
      {pick(ne(x, y), x, y), x, {}, kIntegerRule},
      {pick(ne(x, y), y, x), y, {}, kIntegerRule},
      {pick(b0, x + y, x + z), x + pick(b0, y, z), {}, kIntegerRule},
      {pick(b0, x + y, x), x + pick(b0, y, i32(0)), {}, kIntegerRule},
      {pick(b0, x, x + y), x + pick(b0, i32(0), y), {}, kIntegerRule},
      {pick(b0, x * y, x * z), x * pick(b0, y, z), {}, kIntegerRule},
      {pick(b0, min(x, y), min(x, z)), min(x, pick(b0, y, z)), {}, kIntegerRule},
      {pick(b0, max(x, y), max(x, z)), max(x, pick(b0, y, z)), {}, kIntegerRule},
      // conditions as values
      {pick(b0, bool_imm(true), b1), logical_or(b0, b1), {}, kAnyRule},
      {pick(b0, b1, bool_imm(false)), logical_and(b0, b1), {}, kAnyRule},
      {pick(b0, bool_imm(false), b1), logical_and(logical_not(b0), b1), {}, kAnyRule},
      {pick(b0, b1, bool_imm(true)), logical_or(logical_not(b0), b1), {}, kAnyRule},
  };
  append_range(rules, list);
}

void add_compare(Rules& rules) {
  const auto& [x, y, z, w, c0, c1, c2, b0, b1, b2] = rule_vars();
  Expr zero = i32(0);
  const Rules list = {
      // min and max against one of their operands
      {lt(min(x, y), x), lt(y, x), {}, kIntegerRule},
      {lt(x, max(x, y)), lt(x, y), {}, kIntegerRule},
      {le(x, min(x, y)), le(x, y), {}, kIntegerRule},
      {le(max(x, y), x), le(y, x), {}, kIntegerRule},
      {le(min(x, y), max(x, z)), bool_imm(true), {}, kIntegerRule},
      {lt(max(x, y), min(x, z)), bool_imm(false), {}, kIntegerRule},
      {eq(min(x, y), x), le(x, y), {}, kIntegerRule},
      {eq(max(x, y), x), le(y, x), {}, kIntegerRule},
      {ne(min(x, y), x), lt(y, x), {}, kIntegerRule},
      {ne(max(x, y), x), lt(x, y), {}, kIntegerRule},
      {eq(min(x, y), max(x, y)), eq(x, y), {}, kIntegerRule},
      // min and max against constants
      {lt(min(x, c0), c1), lt(x, c1), ge(c0, c1), kIntegerRule},
      {lt(min(x, c0), c1), bool_imm(true), lt(c0, c1), kIntegerRule},
      {lt(max(x, c0), c1), lt(x, c1), lt(c0, c1), kIntegerRule},
      {lt(max(x, c0), c1), bool_imm(false), ge(c0, c1), kIntegerRule},
      {lt(c1, min(x, c0)), lt(c1, x), lt(c1, c0), kIntegerRule},
      {lt(c1, min(x, c0)), bool_imm(false), ge(c1, c0), kIntegerRule},
      {lt(c1, max(x, c0)), lt(c1, x), ge(c1, c0), kIntegerRule},
      {lt(c1, max(x, c0)), bool_imm(true), lt(c1, c0), kIntegerRule},
      {le(min(x, c0), c1), le(x, c1), gt(c0, c1), kIntegerRule},
      {le(max(x, c0), c1), le(x, c1), le(c0, c1), kIntegerRule},
      {le(c1, min(x, c0)), le(c1, x), le(c1, c0), kIntegerRule},
      {le(c1, max(x, c0)), le(c1, x), gt(c1, c0), kIntegerRule},
      {eq(min(x, c0), c1), eq(x, c1), gt(c0, c1), kIntegerRule},
      {eq(max(x, c0), c1), eq(x, c1), lt(c0, c1), kIntegerRule},
      {eq(min(x, c0), c1), bool_imm(false), lt(c0, c1), kIntegerRule},
      {eq(max(x, c0), c1), bool_imm(false), gt(c0, c1), kIntegerRule},
      {eq(min(x, c0), c1), le(c0, x), eq(c0, c1), kIntegerRule},
      {eq(max(x, c0), c1), le(x, c0), eq(c0, c1), kIntegerRule},
      // quotients against constants
      {lt(floordiv(x, c0), c1), lt(x, c1 * c0), gt(c0, zero)},
      {le(floordiv(x, c0), c1), lt(x, (c1 + 1) * c0), gt(c0, zero)},
      {lt(c1, floordiv(x, c0)), le((c1 + 1) * c0, x), gt(c0, zero)},
      {le(c1, floordiv(x, c0)), le(c1 * c0, x), gt(c0, zero)},
      {lt(truncdiv(x, c0), c1), lt(x, c1 * c0), logical_and(gt(c0, zero), gt(c1, zero))},
      {le(c1, truncdiv(x, c0)), le(c1 * c0, x), logical_and(gt(c0, zero), gt(c1, zero))},
      // quotients against their dividend
      {le(floordiv(x, c0) * c0, x), bool_imm(true), gt(c0, zero)},
      {lt(x, floordiv(x, c0) * c0), bool_imm(false), gt(c0, zero)},
      {lt(floordiv(x, c0) * c0, floordiv(y, c0) * c0), lt(floordiv(x, c0), floordiv(y, c0)), gt(c0, zero)},
      {eq(floordiv(x, c0) * c0, x), eq(floormod(x, c0), zero), gt(c0, zero)},
      // products against 0
      {eq(x * y, zero), logical_or(eq(x, zero), eq(y, zero))},
      {ne(x * y, zero), logical_and(ne(x, zero), ne(y, zero))},
      // one condition
      {lt(pick(b0, c0, c1), c2), pick(b0, lt(c0, c2), lt(c1, c2)), {}, kIntegerRule},
      {eq(pick(b0, c0, c1), c2), pick(b0, eq(c0, c2), eq(c1, c2)), {}, kIntegerRule},
      {ne(pick(b0, c0, c1), c2), pick(b0, ne(c0, c2), ne(c1, c2)), {}, kIntegerRule},
      {raw<EQ>(b0, bool_imm(true)), b0, {}, kAnyRule},
      {raw<EQ>(b0, bool_imm(false)), logical_not(b0), {}, kAnyRule},
      {raw<NE>(b0, bool_imm(true)), logical_not(b0), {}, kAnyRule},
      {raw<NE>(b0, bool_imm(false)), b0, {}, kAnyRule},
  };
  append_range(rules, list);
}

void add_logic(Rules& rules) {
  const auto& [x, y, z, w, c0, c1, c2, b0, b1, b2] = rule_vars();
  const Rules list = {
      // Whoever evaluates b1 and b2 before b0 may guard it by them, as in i < n and A[i] > 0 or i < m and A[i] > 0.
      {logical_and(logical_or(b1, b0), logical_or(b2, b0)), logical_or(logical_and(b1, b2), b0), {}, kAnyRule, true},
      {logical_or(logical_and(b1, b0), logical_and(b2, b0)), logical_and(logical_or(b1, b2), b0), {}, kAnyRule, true},
      {logical_and(logical_or(b0, b1), logical_or(b0, b2)), logical_or(b0, logical_and(b1, b2)), {}, kAnyRule},
      {logical_or(logical_and(b0, b1), logical_and(b0, b2)), logical_and(b0, logical_or(b1, b2)), {}, kAnyRule},
      {logical_and(logical_or(b0, b1), b0), b0, {}, kAnyRule},
      {logical_or(logical_and(b0, b1), b0), b0, {}, kAnyRule},
      {logical_and(logical_or(b0, b1), logical_not(b0)), logical_and(logical_not(b0), b1), {}, kAnyRule},
      {logical_or(logical_and(b0, b1), logical_not(b0)), logical_or(logical_not(b0), b1), {}, kAnyRule},
      {logical_and(b0, logical_not(b0)), bool_imm(false), {}, kAnyRule},
      {logical_or(b0, logical_not(b0)), bool_imm(true), {}, kAnyRule},
      {logical_and(le(x, y), le(y, x)), eq(x, y), {}, kIntegerRule},
      {logical_or(lt(x, y), lt(y, x)), ne(x, y), {}, kIntegerRule},
      {logical_or(lt(x, y), eq(x, y)), le(x, y), {}, kIntegerRule},
      {logical_and(le(x, y), ne(x, y)), lt(x, y), {}, kIntegerRule},
      {logical_or(le(x, y), le(y, x)), bool_imm(true), {}, kIntegerRule},
      {logical_and(lt(x, y), lt(y, x)), bool_imm(false), {}, kIntegerRule},
      {logical_and(eq(x, y), ne(x, y)), bool_imm(false), {}, kIntegerRule},
      {logical_and(le(x, c0), le(c1, x)), eq(x, c0), eq(c0, c1), kIntegerRule},
      {logical_and(le(x, c0), le(c1, x)), bool_imm(false), lt(c0, c1), kIntegerRule},
      {logical_and(eq(x, c0), eq(x, c1)), bool_imm(false), ne(c0, c1), kIntegerRule},
      {logical_or(ne(x, c0), ne(x, c1)), bool_imm(true), ne(c0, c1), kIntegerRule},
  };
  append_range(rules, list);
}

/// Arithmetic outside the normal form of sums: what wraps, what truncates, what divides by an unknown.
void add_arithmetic(Rules& rules) {
  const auto& [x, y, z, w, c0, c1, c2, b0, b1, b2] = rule_vars();
  Expr zero = i32(0), one = i32(1);
  const Rules list = {
      {raw<Add>(x, zero), x, {}, kWrappingRule},
      {raw<Sub>(x, zero), x, {}, kWrappingRule},
      {raw<Mul>(x, one), x, {}, kWrappingRule},
      {raw<Mul>(x, zero), zero, {}, kWrappingRule},
      {x - x, zero, {}, kWrappingRule},
      {(x + c0) + c1, x + (c0 + c1), {}, kWrappingRule},
      {(x * c0) * c1, x * (c0 * c1), {}, kWrappingRule},
      {(x + y) - y, x, {}, kWrappingRule},
      {(x - y) + y, x, {}, kWrappingRule},
      {x - (x - y), y, {}, kWrappingRule},
      {x - (x + y), zero - y, {}, kWrappingRule},
      {(x + y) - (x + z), y - z, {}, kWrappingRule},
      {min(x, y) * max(x, y), x * y, {}, kWrappingRule},
      {raw<Add>(x, x), x * 2, {}, kWrappingRule},
      {x * c0 + x, x * (c0 + 1), {}, kWrappingRule},
      {x * c0 - x, x * (c0 - 1), {}, kWrappingRule},
      {x * c0 + x * c1, x * (c0 + c1), {}, kWrappingRule},
      {x * c0 - x * c1, x * (c0 - c1), {}, kWrappingRule},
      {raw<Div>(x, one), x, {}, kIntegerRule},
      {raw<FloorDiv>(x, one), x, {}, kWrappingRule},
      {raw<Mod>(x, one), zero, {}, kIntegerRule},
      {raw<FloorMod>(x, one), zero, {}, kWrappingRule},
      {truncdiv(truncdiv(x, c0), c1), truncdiv(x, c0 * c1), logical_and(gt(c0, zero), gt(c1, zero))},
      {truncdiv(x * c0, c1), truncdiv(x, floordiv(c1, c0)),
       logical_and(gt(c0, zero), logical_and(gt(c1, zero), eq(floormod(c1, c0), zero)))},
      {truncmod(truncmod(x, c0), c1), truncmod(x, c1),
       logical_and(gt(c0, zero), logical_and(gt(c1, zero), eq(floormod(c0, c1), zero))), kIntegerRule},
      {truncmod(x * c0, c1), truncmod(x, floordiv(c1, c0)) * c0,
       logical_and(gt(c0, zero), logical_and(gt(c1, zero), eq(floormod(c1, c0), zero)))},
      {floormod(floormod(x, c0), c1), floormod(x, c1),
       logical_and(gt(c0, zero), logical_and(gt(c1, zero), eq(floormod(c0, c1), zero))), kIntegerRule},
      {floormod(x, c0) - floormod(x, c0), zero, {}, kWrappingRule},
  };
  append_range(rules, list);
}

// ---- compiling

bool commutes(Kind kind) {
  return kind == Kind::kAdd || kind == Kind::kMul || kind == Kind::kMin || kind == Kind::kMax || kind == Kind::kEQ ||
         kind == Kind::kNE || kind == Kind::kAnd || kind == Kind::kOr;
}

std::vector<Expr> children(const Expr& e) {
  if (BinaryOperands operands = binary_operands(e)) return {*operands.a, *operands.b};
  if (const Not* negation = e.as<Not>()) return {negation->a};
  if (const Select* select = e.as<Select>()) return {select->condition, select->true_value, select->false_value};
  return {};
}

int compile(const Expr& e, std::vector<RuleNode>& out) {
  RuleNode node{e.kind()};
  node.is_bool = e.dtype().is_bool();
  if (e.is<Var>()) {
    std::array<Expr, RuleVars::kCount> all = rule_vars().all();
    for (int slot = 0; slot < RuleVars::kCount; ++slot) {
      if (all[slot] == e) node.slot = slot;
    }
  } else if (const IntImm* imm = e.as<IntImm>()) {
    node.value = imm->value;
  } else {
    std::vector<Expr> parts = children(e);
    TW_CHECK(!parts.empty(), kind_name(e.kind()) + " cannot stand in a rule");
    for (size_t i : indices_of(parts)) node.child[i] = compile(parts[i], out);
  }
  out.push_back(node);
  return static_cast<int>(out.size()) - 1;
}

/// The pattern with the operands of its commuting nodes in every order.
std::vector<std::vector<RuleNode>> orders(const std::vector<RuleNode>& pattern, bool keeps_guards) {
  std::vector<std::vector<RuleNode>> result{pattern};
  for (size_t at : indices_of(pattern)) {
    const bool is_logic = pattern[at].kind == Kind::kAnd || pattern[at].kind == Kind::kOr;
    if (!commutes(pattern[at].kind) || (keeps_guards && is_logic)) continue;
    size_t count = result.size();
    for (size_t i = 0; i < count; ++i) {
      std::vector<RuleNode> swapped = result[i];
      std::swap(swapped[at].child[0], swapped[at].child[1]);
      result.push_back(std::move(swapped));
    }
  }
  return result;
}

using Buckets = std::array<std::vector<CompiledRule>, kNumKinds>;

Buckets* compile_all() {
  auto* buckets = new Buckets;
  for (const Rule& rule : rewrite_rules()) {
    CompiledRule compiled;
    compiled.rule = &rule;
    compiled.domain = rule.domain;
    std::vector<RuleNode> pattern;
    compile(rule.pattern, pattern);
    compile(rule.replacement, compiled.replacement);
    if (rule.guard.defined()) compile(rule.guard, compiled.guard);
    for (std::vector<RuleNode>& order : orders(pattern, rule.keeps_guards)) {
      for (size_t i = 0; i < 3; ++i) {
        int child = order.back().child[i];
        if (child < 0) continue;
        const RuleNode& operand = order[child];
        compiled.operands[i] = operand.slot < 0                        ? static_cast<int>(operand.kind)
                               : rule_vars().is_constant(operand.slot) ? CompiledRule::kConstantKind
                                                                       : CompiledRule::kAnyKind;
      }
      compiled.pattern = std::move(order);
      (*buckets)[static_cast<size_t>(rule.pattern.kind())].push_back(compiled);
    }
  }
  return buckets;
}

}  // namespace

const std::vector<Rule>& rewrite_rules() {
  static const Rules* rules = [] {
    auto* list = new Rules;
    add_min_max(*list);
    add_select(*list);
    add_compare(*list);
    add_logic(*list);
    add_arithmetic(*list);
    return list;
  }();
  return *rules;
}

std::span<const CompiledRule> rules_with_root(Kind kind) {
  static const Buckets* buckets = compile_all();
  return (*buckets)[static_cast<size_t>(kind)];
}

}  // namespace tilewright::arith
