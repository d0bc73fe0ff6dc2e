// Inequalities between sums with min and max, such as the regions of stencils whose reads are clamped to the array. The
// search of prove.cc decides which operand a min or max equals while it looks for facts, within one budget. Here that
// case distinction comes first: by operands alone, then by the order of operands, innermost min and max first. Each
// order is a fact for the cases below it.
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"

namespace tilewright::arith {
namespace {

/// Orders looked at before giving up: along one variable there are few more than there are operands.
constexpr int kOrders = 64;
/// Sums looked at before the orders are.
constexpr int kSums = 256;

/// A min or max without another one in it; null where there is none.
Expr innermost_choice(const Expr& e) {
  Expr found;
  auto look = [&](const auto& node, Visitor& walk) {
    walk.descend(node);
    if (!found.defined()) found = Expr(node);
  };
  visit(e, on<Min, Max>(look));
  return found;
}

Expr with_choice(const Expr& e, const Expr& choice, const Expr& chosen) {
  auto replaced = [&](const auto& node, Rewriter& walk) -> Expr {
    return same_expr(Expr(node), choice) ? chosen : Expr(walk.descend(node));
  };
  return rewrite(e, on<Min, Max>(replaced));
}

}  // namespace

bool Engine::prove_less_equal_by_cases(const Expr& a, const Expr& b) {
  if (!is_index(a.dtype()) || !is_index(b.dtype()) || effect_of(a) != Effect::kPure || effect_of(b) != Effect::kPure) {
    return false;
  }
  Linear difference;
  collect(b, 1, difference);
  collect(a, -1, difference);
  int sums = kSums, orders = kOrders;
  return not_negative_by_operands(difference, sums) || not_negative_in_all_orders(b - a, orders);
}

/// Tries both operands of an added min or of a subtracted max; for the others, one operand is enough.
bool Engine::not_negative_by_operands(const Linear& goal, int& sums) {
  if (goal.bad || --sums < 0) return false;
  if (bound(goal).min_value >= 0) return true;
  const Term *every = nullptr, *some = nullptr;
  for (const Term& term : goal.terms) {
    if (!term.atom.is<Min>() && !term.atom.is<Max>()) continue;
    (term.atom.is<Min>() == (term.coeff < 0) ? some : every) = &term;
  }
  if (!every && !some) return prove_ge0(goal);
  const Term& term = every ? *every : *some;
  const auto [first, second] = binary_operands(term.atom);
  auto holds_for = [&](const Expr& operand) {
    return not_negative_by_operands(with_atom_replaced(goal, term, operand), sums);
  };
  return every ? holds_for(*first) && holds_for(*second) : holds_for(*first) || holds_for(*second);
}

bool Engine::not_negative_in_all_orders(const Expr& e, int& orders) {
  if (--orders < 0) return false;
  const Expr simple = simplify(e);
  const Expr choice = innermost_choice(simple);
  if (!choice.defined() || !is_index(choice.dtype())) return prove_ge0(linear(simple));
  const auto [first, second] = binary_operands(choice);
  auto where = [&](bool first_is_smaller) {
    const size_t mark = enter(first_is_smaller ? le(*first, *second) : le(*second, *first));
    const Expr& chosen = first_is_smaller == choice.is<Min>() ? *first : *second;
    const bool holds = not_negative_in_all_orders(with_choice(simple, choice, chosen), orders);
    leave(mark);
    return holds;
  };
  if (prove_less(*first, *second, true)) return where(true);
  if (prove_less(*second, *first, true)) return where(false);
  return where(true) && where(false);
}

}  // namespace tilewright::arith
