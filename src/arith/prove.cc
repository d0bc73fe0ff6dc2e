// Inequalities from facts: a goal "sum >= 0" holds if it does so by its interval, or if taking away a multiple of a
// fact "sum >= 0" leaves a goal that holds. The facts are the context's, the symbolic ends of ranges, and what the
// operators in the goal say of their operands (c (x // c) <= x, min(a, b) <= a, ...). The search is cut off by depth
// and by a budget of steps, so a query that fails costs microseconds.
#include "arith/engine.h"
#include "ir/build.h"

namespace tilewright::arith {
namespace {

constexpr int kDepth = 4;
constexpr int kBudget = 48;

}  // namespace

bool Engine::prove_ge0(const Linear& goal) {
  if (goal.bad) return false;
  if (bound(goal).min_value >= 0) return true;
  if (goal.terms.empty()) return false;
  bool product = std::any_of(goal.terms.begin(), goal.terms.end(), [](const Term& t) { return t.atom.is<Mul>(); });
  int budget = kBudget;
  if (product) {
    Linear sum = expanded(goal);
    if (sum.bad) return false;
    return bound(sum).min_value >= 0 || search(sum, kDepth, budget);
  }
  return search(goal, kDepth, budget);
}

bool Engine::search(const Linear& goal, int depth, int& budget) {
  if (depth == 0 || goal.bad || goal.terms.size() > 16) return false;
  auto holds = [&](const Linear& next) {
    if (next.bad || budget-- <= 0) return false;
    return bound(next).min_value >= 0 || search(next, depth - 1, budget);
  };
  for (const Term& term : goal.terms) {
    // goal - (c / f) fact, multiplied by |f| where f does not divide c; c and f have the same sign.
    auto settles = [&](const Linear& fact) {
      const Term* in_fact = fact.find(term.fp);
      if (budget <= 0 || fact.bad || !in_fact || (in_fact->coeff < 0) != (term.coeff < 0)) return false;
      int64_t c = term.coeff, f = in_fact->coeff;
      Linear next = goal;
      if (c % f == 0) {
        next.add(fact, -(c / f));
      } else {
        next.scale(f < 0 ? -f : f);
        next.add(fact, f < 0 ? c : -c);
      }
      return holds(next);
    };
    if (any_fact_about(term, settles)) return true;
    if (!term.atom.is<Min>() && !term.atom.is<Max>()) continue;
    bool is_min = term.atom.is<Min>();
    const Expr& a = is_min ? term.atom.as<Min>()->a : term.atom.as<Max>()->a;
    const Expr& b = is_min ? term.atom.as<Min>()->b : term.atom.as<Max>()->b;
    auto with = [&](const Expr& side) {
      Linear next = goal;
      next.add(term.atom, term.fp, -term.coeff);
      next.add(flat(side), term.coeff);
      return next;
    };
    // The value is one of both: both cases must hold, or one where it bounds the atom from the useful side.
    bool either = is_min == (term.coeff < 0);
    bool first = holds(with(a));
    if (either ? (first || holds(with(b))) : (first && holds(with(b)))) return true;
  }
  return false;
}

/// Offers facts that mention the term's atom until one settles the goal.
bool Engine::any_fact_about(const Term& term, const std::function<bool(const Linear&)>& settles) {
  auto known_of = [&](const Expr& e) -> std::span<const Linear> {
    const VarInfo* known = info(e);
    return known ? std::span<const Linear>(known->facts) : std::span<const Linear>();
  };
  for (const Linear& fact : facts_) {
    if (settles(fact)) return true;
  }
  for (const Linear& fact : known_of(term.atom)) {
    if (settles(fact)) return true;
  }
  if (const Mul* mul = term.atom.as<Mul>()) {
    // A fact about one factor, times the other where that is not negative: i <= n - 1 gives i m <= (n - 1) m.
    for (auto [factor, other] : {std::pair{mul->a, mul->b}, std::pair{mul->b, mul->a}}) {
      if (bound(other).min_value < 0) continue;
      Fingerprint print = fp(factor);
      auto settles_times = [&](const Linear& fact) {
        const Term* in_fact = fact.find(print);
        bool useful = in_fact && (in_fact->coeff < 0) == (term.coeff < 0);
        return useful && settles(multiplied(fact, other));
      };
      for (const Linear& fact : facts_) {
        if (settles_times(fact)) return true;
      }
      for (const Linear& fact : known_of(factor)) {
        if (settles_times(fact)) return true;
      }
    }
  } else if (const FloorDiv* div = term.atom.as<FloorDiv>()) {
    // d q <= x <= d q + d - 1
    const IntImm* d = div->b.as<IntImm>();
    if (!d || d->value <= 0) return false;
    Linear fact = flat(div->a);
    fact.add(term.atom, term.fp, -d->value);
    if (term.coeff > 0) {
      fact.scale(-1);
      fact.add_constant(d->value - 1);
    }
    return settles(fact);
  } else if (const FloorMod* mod = term.atom.as<FloorMod>(); mod && term.coeff < 0) {
    // r <= n - 1 for a divisor known to be positive; and r <= x for x >= 0.
    if (!mod->b.is<IntImm>()) {
      Linear divisor = flat(mod->b);
      if (bound(divisor).min_value <= 0) return false;
      divisor.add_constant(-1);
      divisor.add(term.atom, term.fp, -1);
      if (settles(divisor)) return true;
    }
    Linear dividend = flat(mod->a);
    if (bound(dividend).min_value < 0) return false;
    dividend.add(term.atom, term.fp, -1);
    return settles(dividend);
  }
  return false;
}

/// The product with an expression that is not negative.
Linear Engine::multiplied(const Linear& fact, const Expr& factor) {
  Linear result;
  result.bad = fact.bad;
  Fingerprint print = fp(factor);
  for (const Term& term : fact.terms) {
    Expr a = term.atom, b = factor;
    promote(a, b);
    result.add(make<Mul>({a, b}), term.fp * print, term.coeff);
  }
  result.add(factor, print, fact.constant);
  return expanded(result);
}

bool Engine::prove_less(const Expr& a, const Expr& b, bool or_equal) {
  if (!is_index(a.dtype()) || !is_index(b.dtype())) {
    Expr left = a, right = b;
    promote(left, right);
    return prove(or_equal ? le(left, right) : lt(left, right));
  }
  Linear difference;
  collect(b, 1, difference);
  collect(a, -1, difference);
  recombine(difference);
  if (!or_equal) difference.add_constant(-1);
  return prove_ge0(difference);
}

bool Engine::prove_equal(const Expr& a, const Expr& b) {
  if (a == b && !a.dtype().is_float()) return effect_of(a) != Effect::kUpdateState;
  if (!is_index(a.dtype()) || !is_index(b.dtype())) {
    if (a.dtype() != b.dtype()) return false;
    Expr x = simplify(a), y = simplify(b);
    if (x == y) return effect_of(x) != Effect::kUpdateState;
    return fp(x) == fp(y);
  }
  Linear difference;
  collect(a, 1, difference);
  collect(b, -1, difference);
  recombine(difference);
  if (difference.bad) return false;
  if (difference.is_zero() || difference.fingerprint().is_zero()) return true;
  if (difference.terms.empty()) return false;
  ConstIntBound range = bound(difference);
  if (!range.contains(0)) return false;
  if (range.min_value == 0 && range.max_value == 0) return true;
  Linear opposite = difference;
  opposite.scale(-1);
  return prove_ge0(difference) && prove_ge0(opposite);
}

bool Engine::prove(const Expr& condition) {
  Expr simple = simplify(condition);
  if (const Broadcast* b = simple.as<Broadcast>()) simple = b->value;
  if (const IntImm* imm = simple.as<IntImm>()) return imm->value != 0;
  if (const And* e = simple.as<And>()) return prove(e->a) && prove(e->b);
  if (const Or* e = simple.as<Or>()) return prove(e->a) || prove(e->b);
  if (is_call_to(simple, Intrinsic::k_likely)) return prove(Expr(simple.as<Call>()->args[0]));
  auto order = [&](const Expr& a, const Expr& b, bool or_equal) {
    return is_index(a.dtype()) && prove_less(a, b, or_equal);
  };
  if (const LT* e = simple.as<LT>()) return order(e->a, e->b, false);
  if (const LE* e = simple.as<LE>()) return order(e->a, e->b, true);
  if (const EQ* e = simple.as<EQ>()) return is_index(e->a.dtype()) && prove_equal(e->a, e->b);
  if (const NE* e = simple.as<NE>()) return order(e->a, e->b, false) || order(e->b, e->a, false);
  return false;
}

}  // namespace tilewright::arith
