// Matching the rules of rules.cc against an expression, and building what they replace it by.
#include "arith/engine.h"
#include "arith/rules.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

struct Match {
  Engine& engine;
  DataType type;  ///< type of x, y, ...; set by the first operand
  bool typed = false;
  std::array<Expr, RuleVars::kCount> slots;

  bool fits_type(DataType t) {
    if (!typed) {
      type = t;
      typed = true;
    }
    return type == t;
  }

  bool matches(const std::vector<RuleNode>& pattern, int at, const Expr& e) {
    const RuleNode& node = pattern[at];
    if (node.slot >= 0) return bind(node, e);
    if (e.kind() != node.kind) return false;
    if (node.kind == Kind::kIntImm) {
      return e.as<IntImm>()->value == node.value && e.dtype().is_bool() == node.is_bool &&
             (node.is_bool || fits_type(e.dtype()));
    }
    if (BinaryOperands operands = binary_operands(e)) {
      return matches(pattern, node.child[0], *operands.a) && matches(pattern, node.child[1], *operands.b);
    }
    switch (node.kind) {
      case Kind::kNot:
        return matches(pattern, node.child[0], e.as<Not>()->a);
      case Kind::kSelect:
        return matches(pattern, node.child[0], e.as<Select>()->condition) &&
               matches(pattern, node.child[1], e.as<Select>()->true_value) &&
               matches(pattern, node.child[2], e.as<Select>()->false_value);
      default:
        return false;
    }
  }

  bool bind(const RuleNode& node, const Expr& e) {
    if (node.is_bool != e.dtype().is_bool() || e.dtype().is_vector()) return false;
    if (!node.is_bool && !fits_type(e.dtype())) return false;
    if (rule_vars().is_constant(node.slot) && !e.is<IntImm>()) return false;
    Expr& slot = slots[node.slot];
    if (!slot.defined()) {
      slot = e;
      return true;
    }
    return slot == e || engine.fp(slot) == engine.fp(e);
  }

  /// Returns null if a constant overflows its type, or for a division by 0.
  Expr build(const std::vector<RuleNode>& nodes, int at) {
    const RuleNode& node = nodes[at];
    if (node.slot >= 0) return slots[node.slot];
    if (node.kind == Kind::kIntImm) {
      DataType target = node.is_bool ? DataType::bool_() : type;
      int64_t value = wrap_int(target, node.value);
      if (value != node.value && is_index(target)) return {};
      return int_imm(target, value);
    }
    Expr parts[3];
    for (int i = 0; i < 3; ++i) {
      if (node.child[i] < 0) continue;
      parts[i] = build(nodes, node.child[i]);
      if (!parts[i].defined()) return {};
    }
    if (node.kind == Kind::kNot) return logical_not(parts[0]);
    if (node.kind == Kind::kSelect) return make<Select>({parts[0], parts[1], parts[2]});
    bool constants = parts[0].is<IntImm>() && parts[1].is<IntImm>();
    bool division = node.kind == Kind::kDiv || node.kind == Kind::kMod || node.kind == Kind::kFloorDiv ||
                    node.kind == Kind::kFloorMod;
    if (division && is_const_int(parts[1], 0)) return {};
    Expr result = binary(node.kind, parts[0], parts[1]);
    if (constants && !result.is<IntImm>()) return {};  // the result would overflow
    return result;
  }
};

std::array<int, 3> operand_kinds(const Expr& e) {
  auto kind = [](const Expr& operand) { return static_cast<int>(operand.kind()); };
  if (BinaryOperands operands = binary_operands(e)) {
    return {kind(*operands.a), kind(*operands.b), CompiledRule::kAnyKind};
  }
  if (const Select* select = e.as<Select>()) {
    return {kind(select->condition), kind(select->true_value), kind(select->false_value)};
  }
  return {CompiledRule::kAnyKind, CompiledRule::kAnyKind, CompiledRule::kAnyKind};
}

bool worth_trying(const CompiledRule& rule, const std::array<int, 3>& kinds) {
  for (size_t i : indices_of(kinds)) {
    int wanted = rule.operands[i];
    if (wanted == CompiledRule::kConstantKind) wanted = static_cast<int>(Kind::kIntImm);
    if (wanted != CompiledRule::kAnyKind && wanted != kinds[i]) return false;
  }
  return true;
}

}  // namespace

/// The expression after the first rule that applies; itself when none does.
Expr Engine::rewritten(const Expr& e) {
  std::span<const CompiledRule> rules = rules_with_root(e.kind());
  if (rules.empty() || e.dtype().is_vector()) return e;
  std::array<int, 3> kinds = operand_kinds(e);
  for (const CompiledRule& rule : rules) {
    if (!worth_trying(rule, kinds)) continue;
    Match match{*this, {}, false, {}};
    if (!match.matches(rule.pattern, static_cast<int>(rule.pattern.size()) - 1, e)) continue;
    uint8_t domain = kAnyRule;
    if (match.typed) {
      domain = match.type.is_float()               ? kFloatRule
               : is_index(match.type) && !wraps(e) ? kIndexRule
               : match.type.is_integral()          ? kWrappingRule
                                                   : 0;
    }
    if ((rule.domain & domain) == 0 || fingerprints_.has_effect(e)) continue;
    if (!rule.guard.empty()) {
      Expr guard = match.build(rule.guard, static_cast<int>(rule.guard.size()) - 1);
      if (!guard.defined() || !prove(guard)) continue;
    }
    // Operands that are sums over data may leave the type where the sum with a constant did not.
    const bool moves_sums = domain == kIndexRule && (rule.domain & kWrappingRule) == 0 && reads_data(e);
    if (moves_sums && any_of(match.slots, [&](const Expr& operand) {
          return operand.defined() && is_index(operand.dtype()) && !stays_inside(flat(operand), operand.dtype());
        })) {
      continue;
    }
    Expr result = match.build(rule.replacement, static_cast<int>(rule.replacement.size()) - 1);
    if (result.defined()) return result;
  }
  return e;
}

}  // namespace tilewright::arith
