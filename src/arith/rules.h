// Rewrite rules as data. A rule is written in the IR itself, with variables that stand for anything:
//
//   {min(max(x, y), x), x}
//   {lt(floordiv(x, c0), c1), lt(x, c1 * c0), gt(c0, 0)}
//
// x, y, z, w match any expression of one type, c0, c1, c2 constants of it, b0, b1, b2 conditions. Operators that
// commute match in both orders, unless the rule says otherwise. The replacement computes with the constants that
// matched; where a result does not fit the type the rule does not apply. The guard, if any, must be proved.
//
// What the normal form of sums (simplify_index.cc) and the order of comparisons already settle needs no rule. Each rule
// is checked by rules_test.cc on all small integers and at the limits of the types.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace tilewright::arith {

/// Types of x, y, ... for which a rule holds.
enum RuleDomain : uint8_t {
  kIndexRule = 1,     ///< arithmetic that does not overflow
  kWrappingRule = 2,  ///< arithmetic modulo 2^bits
  kFloatRule = 4,
  kIntegerRule = kIndexRule | kWrappingRule,
  kAnyRule = kIndexRule | kWrappingRule | kFloatRule,
};

struct Rule {
  Expr pattern, replacement;
  Expr guard = {};  ///< null: none
  uint8_t domain = kIndexRule;
  /// Operands of `and` and `or` match in this order alone: in another one, the replacement would evaluate an operand
  /// that its neighbor guards.
  bool keeps_guards = false;
};

/// The variables of the patterns; their type in the table is int32 (b: bool), in a match that of the operands.
struct RuleVars {
  Expr x, y, z, w, c0, c1, c2, b0, b1, b2;
  RuleVars();
  static constexpr int kCount = 10;
  std::array<Expr, kCount> all() const { return {x, y, z, w, c0, c1, c2, b0, b1, b2}; }
  bool is_constant(int slot) const { return slot >= 4 && slot < 7; }
};

const RuleVars& rule_vars();
/// Returns all rules, in the order in which they are tried.
const std::vector<Rule>& rewrite_rules();

/// A pattern or replacement, compiled: nodes in an array, children by position.
struct RuleNode {
  Kind kind;
  bool is_bool = false;
  int slot = -1;      ///< for a variable
  int64_t value = 0;  ///< for a literal
  int child[3] = {-1, -1, -1};
};
struct CompiledRule {
  const Rule* rule;
  uint8_t domain;
  /// Kinds that the operands of the root need for a match: a kind, kAnyKind or kConstantKind.
  static constexpr int kAnyKind = -1, kConstantKind = -2;
  std::array<int, 3> operands{kAnyKind, kAnyKind, kAnyKind};
  std::vector<RuleNode> pattern, replacement, guard;  ///< the root is the last node
};
/// The rules whose pattern has this kind at its root; one entry for each order of commuting operands.
std::span<const CompiledRule> rules_with_root(Kind kind);

}  // namespace tilewright::arith
