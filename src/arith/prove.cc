// Inequalities from facts: a goal "sum >= 0" holds if it does so by its interval, or if taking away a multiple of a
// fact "sum >= 0" leaves a goal that holds. The facts are the context's, the symbolic ends of ranges, and what the
// operators in the goal say of their operands (c (x // c) <= x, min(a, b) <= a, ...). The search is cut off by depth
// and by a budget of steps, so a query that fails costs microseconds.
#include "arith/engine.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

constexpr int kDepth = 4;
constexpr int kBudget = 48;
constexpr size_t kMaxTerms = 16;

}  // namespace

bool Engine::prove_ge0(const Linear& goal) {
  if (goal.bad) return false;
  if (bound(goal).min_value >= 0) return true;
  if (goal.terms.empty()) return false;
  bool product = any_of(goal.terms, [](const Term& t) { return t.atom.is<Mul>(); });
  int budget = kBudget;
  if (product) {
    Linear sum = expanded(goal);
    if (sum.bad) return false;
    return bound(sum).min_value >= 0 || search(sum, kDepth, budget);
  }
  return search(goal, kDepth, budget);
}

namespace {
/// Integer tightening: g t + k >= 0 implies t + floor(k / g) >= 0.
void tighten_by_gcd(Linear& goal) {
  int64_t content = goal.content();
  if (content <= 1) return;
  int64_t constant = floor_div(goal.constant, content);
  goal.constant = 0;
  goal.divide_exactly(content);
  goal.constant = constant;
}
}  // namespace

bool Engine::search(const Linear& goal, int depth, int& budget) {
  if (depth == 0 || goal.bad || goal.terms.size() > kMaxTerms) return false;
  auto holds = [&](Linear next) {
    if (next.bad || budget-- <= 0) return false;
    tighten_by_gcd(next);
    return bound(next).min_value >= 0 || search(next, depth - 1, budget);
  };
  // Cancels the term with a fact: subtracts c / f of it, scaled by |f| to stay integral. Adding |f| - 1 is sound: a
  // multiple of |f| is >= 0 if it is > -|f|.
  auto without = [&](const Term& term, const Linear& fact) -> std::optional<Linear> {
    const Term* in_fact = fact.find(term.fp);
    if (budget <= 0 || fact.bad || !in_fact || (in_fact->coeff < 0) != (term.coeff < 0)) return std::nullopt;
    const int64_t common = gcd(term.coeff, in_fact->coeff), c = term.coeff / common;
    const int64_t f = in_fact->coeff < 0 ? -(in_fact->coeff / common) : in_fact->coeff / common;
    Linear next = goal;
    next.scale(f);
    next.add(fact, c < 0 ? c : -c);
    next.add_constant(f - 1);
    return next;
  };
  // A goal with products has more derivations than the budget allows: try stated facts first.
  if (any_of(goal.terms, [](const Term& t) { return t.atom.is<Mul>(); })) {
    for (const Term& term : goal.terms) {
      auto settles_at_once = [&](const Linear& fact) {
        auto next = without(term, fact);
        return next && !next->bad && bound(*next).min_value >= 0;
      };
      if (any_stated_fact(term, settles_at_once)) return true;
    }
  }
  for (const Term& term : goal.terms) {
    auto settles = [&](const Linear& fact) {
      auto next = without(term, fact);
      return next && holds(std::move(*next));
    };
    if (any_fact_about(term, settles)) return true;
    if (term.atom.is<BufferLoad>() && any_fact_of_element(term, goal, settles)) return true;
    if (auto next = multiply_by_divisor(goal, term); next && holds(std::move(*next))) return true;
    if (term.atom.is<Select>() && prove_by_select(goal, term, holds)) return true;
    if (!term.atom.is<Min>() && !term.atom.is<Max>()) continue;
    if (prove_by_min_max_operand(goal, term, holds) || prove_by_min_max_case(goal, term, holds)) return true;
  }
  return false;
}

/// The goal with the atom of one of its terms replaced by `value`, which simplify() returned.
Linear Engine::with_atom_replaced(const Linear& goal, const Term& term, const Expr& value) {
  Linear next = goal;
  next.add(term.atom, term.fp, -term.coeff);
  next.add(flat(value), term.coeff);
  return next;
}

/// Proves the goal for both values of a select.
bool Engine::prove_by_select(const Linear& goal, const Term& term, const Holds& holds) {
  const Select& select = *term.atom.as<Select>();
  return holds(with_atom_replaced(goal, term, select.true_value)) &&
         holds(with_atom_replaced(goal, term, select.false_value));
}

/// Proves the goal for one operand of a min or max. That is enough if the operands bound the term from below:
/// -min(a, b) >= -a, and max(a, b) >= a.
bool Engine::prove_by_min_max_operand(const Linear& goal, const Term& term, const Holds& holds) {
  if (term.atom.is<Min>() != (term.coeff < 0)) return false;
  const BinaryOperands operands = binary_operands(term.atom);
  return holds(with_atom_replaced(goal, term, *operands.a)) || holds(with_atom_replaced(goal, term, *operands.b));
}

/// Proves the goal for each operand of a min or max, with the fact that this operand is the smaller (larger) one.
bool Engine::prove_by_min_max_case(const Linear& goal, const Term& term, const Holds& holds) {
  const bool is_min = term.atom.is<Min>();
  const BinaryOperands operands = binary_operands(term.atom);
  auto holds_if_chosen = [&](const Expr& chosen, const Expr& other) {
    Linear order = is_min ? flat(other) - flat(chosen) : flat(chosen) - flat(other);
    if (order.bad) return false;
    facts_.push_back(std::move(order));
    ++cases_;
    const bool result = holds(with_atom_replaced(goal, term, chosen));
    --cases_;
    facts_.pop_back();
    return result;
  };
  return holds_if_chosen(*operands.a, *operands.b) && holds_if_chosen(*operands.b, *operands.a);
}

/// Multiplies the goal by the divisor of a quotient x // d with a positive d that is no constant: e - x // d >= 0 is
/// (e + 1) d - x - 1 >= 0, and e + x // d >= 0 is e d + x >= 0.
std::optional<Linear> Engine::multiply_by_divisor(const Linear& goal, const Term& term) {
  const FloorDiv* div = term.atom.as<FloorDiv>();
  if (!div || div->b.is<IntImm>() || (term.coeff != 1 && term.coeff != -1) || bound(div->b).min_value < 1) {
    return std::nullopt;
  }
  Linear rest = goal;
  rest.add(term.atom, term.fp, -term.coeff);
  if (term.coeff < 0) rest.add_constant(1);
  Linear next = multiplied(rest, div->b);
  next.add(flat(div->a), term.coeff);
  if (term.coeff < 0) next.add_constant(-1);
  return next;
}

/// Tries stated facts that mention the term's atom until one settles the goal.
bool Engine::any_stated_fact(const Term& term, const Settles& settles) {
  for (size_t i : indices_of(facts_)) {  // by index: a nested search pushes and pops facts
    if (facts_[i].find(term.fp) && settles(Linear(facts_[i]))) return true;
  }
  if (const VarInfo* known = info(term.atom)) {
    for (const Linear& fact : known->facts) {
      if (settles(fact)) return true;
    }
  }
  return false;
}

/// Whether a stated fact about the term settles it, or one that follows from what its atom is.
bool Engine::any_fact_about(const Term& term, const Settles& settles) {
  if (any_stated_fact(term, settles)) return true;
  if (const Mul* mul = term.atom.as<Mul>()) return any_fact_of_product(term, *mul, settles);
  if (const FloorDiv* div = term.atom.as<FloorDiv>()) return any_fact_of_quotient(term, *div, settles);
  if (const FloorMod* mod = term.atom.as<FloorMod>()) {
    return any_fact_of_remainder(term, mod->a, mod->b, true, settles);
  }
  if (const Mod* mod = term.atom.as<Mod>()) return any_fact_of_remainder(term, mod->a, mod->b, false, settles);
  return false;
}

/// Tries the declared facts about buffer elements: the bounds of an element; and for two elements of an ascending
/// buffer, x[i] <= x[j] for i <= j, and x[i] + (j - i) <= x[j] where they are distinct.
bool Engine::any_fact_of_element(const Term& term, const Linear& goal, const Settles& settles) {
  const Elements* declared = elements(term.atom);
  if (!declared) return false;
  const BufferLoad& element = *term.atom.as<BufferLoad>();
  for (const Term& other : goal.terms) {
    if (!declared->ascends || (other.coeff < 0) == (term.coeff < 0) || !other.atom.is<BufferLoad>()) continue;
    const BufferLoad& pair = *other.atom.as<BufferLoad>();
    if (pair.buffer->data != element.buffer->data || pair.indices.size() != 1 || element.indices.size() != 1) continue;
    const bool is_later = term.coeff > 0;
    Linear distance = flat(simplify(is_later ? element.indices[0] : pair.indices[0]));
    distance.add(flat(simplify(is_later ? pair.indices[0] : element.indices[0])), -1);
    if (distance.bad || bound(distance).min_value < 0) continue;
    Linear fact = Linear::of_atom(term.atom, term.fp);
    fact.add(other.atom, other.fp, -1);
    if (!is_later) fact.scale(-1);
    if (declared->strictly) fact.add(distance, -1);
    if (settles(fact)) return true;
  }
  Linear fact = flat(term.coeff > 0 ? declared->min : declared->max);
  fact.scale(term.coeff > 0 ? -1 : 1);
  fact.add(term.atom, term.fp, term.coeff > 0 ? 1 : -1);
  return settles(fact);
}

bool Engine::any_fact_of_product(const Term& term, const Mul& mul, const Settles& settles) {
  // Multiplies a fact about one factor by the other, if that is nonnegative: i <= n - 1 gives i m <= (n - 1) m.
  for (auto [factor, other] : {std::pair{mul.a, mul.b}, std::pair{mul.b, mul.a}}) {
    // x - d + 1 <= d (x // d) <= x for d above 0
    if (const FloorDiv* div = factor.as<FloorDiv>(); div && bound(div->b).min_value > 0) {
      Linear divisor = flat(div->b);
      Linear fact = flat(div->a);
      fact.add(multiplied(divisor, factor), -1);
      if (term.coeff > 0) {
        fact.scale(-1);
        fact.add(divisor);
        fact.add_constant(-1);
      }
      if (settles(fact)) return true;
    }
    if (bound(other).min_value < 0) continue;
    Fingerprint print = fp(factor);
    auto settles_times = [&](const Linear& fact) {
      const Term* in_fact = fact.find(print);
      bool useful = in_fact && (in_fact->coeff < 0) == (term.coeff < 0);
      return useful && settles(multiplied(fact, other));
    };
    for (size_t i : indices_of(facts_)) {
      if (facts_[i].find(print) && settles_times(Linear(facts_[i]))) return true;
    }
    if (const VarInfo* known = info(factor)) {
      for (const Linear& fact : known->facts) {
        if (settles_times(fact)) return true;
      }
    }
  }
  return any_mccormick_bound(term, mul, settles);
}

/// McCormick envelope of a product, for x in [k, l] and y in [m, n]: (x - k) (y - m) >= 0, (l - x) (n - y) >= 0,
/// (x - k) (n - y) >= 0, (l - x) (y - m) >= 0.
bool Engine::any_mccormick_bound(const Term& term, const Mul& mul, const Settles& settles) {
  ConstIntBound x = bound(mul.a), y = bound(mul.b);
  Linear left = flat(mul.a), right = flat(mul.b);
  if (left.bad || right.bad) return false;
  auto corner = [&](int64_t of_x, int64_t of_y) {  // sign ((x - of_x) (y - of_y)) >= 0
    constexpr int64_t kFar = int64_t{1} << 30;     // beyond this the bound is only that of the type
    int64_t sign = term.coeff > 0 ? 1 : -1, product = 0;
    if (std::max({of_x, -of_x, of_y, -of_y}) >= kFar || !mul_fits(of_x, of_y, &product)) return false;
    Linear fact = Linear::of_atom(term.atom, term.fp);
    fact.add(left, -of_y);
    fact.add(right, -of_x);
    fact.add_constant(product);
    fact.scale(sign);
    return settles(fact);
  };
  if (term.coeff > 0) {
    return (x.has_min() && y.has_min() && corner(x.min_value, y.min_value)) ||
           (x.has_max() && y.has_max() && corner(x.max_value, y.max_value));
  }
  return (x.has_min() && y.has_max() && corner(x.min_value, y.max_value)) ||
         (x.has_max() && y.has_min() && corner(x.max_value, y.min_value));
}

bool Engine::any_fact_of_quotient(const Term& term, const FloorDiv& div, const Settles& settles) {
  Linear fact = flat(div.a);
  const IntImm* d = div.b.as<IntImm>();
  if (d && d->value > 0) {  // d q <= x <= d q + d - 1
    fact.add(term.atom, term.fp, -d->value);
    if (term.coeff > 0) {
      fact.scale(-1);
      fact.add_constant(d->value - 1);
    }
    return settles(fact);
  }
  // q <= x for x not below 0
  if (d || term.coeff > 0 || bound(div.b).min_value < 1 || bound(fact).min_value < 0) return false;
  fact.add(term.atom, term.fp, -1);
  return settles(fact);
}

bool Engine::any_fact_of_remainder(const Term& term, const Expr& dividend, const Expr& divisor, bool floors,
                                   const Settles& settles) {
  // r <= n - 1 for a divisor known to be positive, and towards zero 1 - n <= r; and r <= x for x >= 0.
  Linear by = flat(divisor);
  if (bound(by).min_value <= 0) return false;
  if (!divisor.is<IntImm>() && (term.coeff < 0 || !floors)) {
    by.add_constant(-1);
    by.add(term.atom, term.fp, term.coeff < 0 ? -1 : 1);
    if (settles(by)) return true;
  }
  Linear fact = flat(dividend);
  if (term.coeff > 0 || bound(fact).min_value < 0) return false;
  fact.add(term.atom, term.fp, -1);
  return settles(fact);
}

/// Multiplies the fact by the factor, and expands the product.
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
  if (auto known = plain_order(a, b, or_equal)) return *known;
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
  if (auto known = plain_equality(a, b)) return *known;
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
  if (cancels_after_expanding_remainders(difference) || cancels_after_expanding_quotients(difference)) return true;
  Linear opposite = difference;
  opposite.scale(-1);
  return prove_ge0(difference) && prove_ge0(opposite);
}

/// Expands remainders: x % d = x - d (x // d), and (r + c (x % m)) // d = (r + c x) // d - (c m / d) (x // m) if d
/// divides c m. The result is a sum of quotients of sums, in which equal quotients have equal fingerprints.
bool Engine::cancels_after_expanding_remainders(Linear sum) {
  constexpr int kMaxSteps = 16;
  for (int step = 0; step < kMaxSteps && expand_first_remainder(sum); ++step) {
    if (sum.is_zero() || sum.fingerprint().is_zero()) return true;
  }
  return false;
}

/// Rewrites the first remainder by a positive constant, in the sum or in a dividend. Returns false if there is none.
bool Engine::expand_first_remainder(Linear& sum) {
  auto quotient = [&](const Expr& a, int64_t d, DataType type) { return divide(flat(a), d, type); };
  for (size_t i = 0; i < sum.terms.size() && !sum.bad; ++i) {
    const Term term = sum.terms[i];
    DataType type = term.atom.dtype();
    if (const FloorMod* mod = term.atom.as<FloorMod>()) {
      auto d = const_int(mod->b);
      if (!d || *d < 1) continue;
      Linear value = flat(mod->a);
      value.add(quotient(mod->a, *d, type), -*d);
      sum.replace_term(i, value, term.coeff);
      return !sum.bad;
    }
    const FloorDiv* div = term.atom.as<FloorDiv>();
    auto d = div ? const_int(div->b) : std::nullopt;
    if (!d || *d < 1) continue;
    Linear dividend = flat(div->a);
    for (size_t j : indices_of(dividend.terms)) {
      const Term inner = dividend.terms[j];
      const FloorMod* mod = inner.atom.as<FloorMod>();
      auto m = mod ? const_int(mod->b) : std::nullopt;
      int64_t period = 0;
      if (!m || *m < 1 || !mul_fits(*m, inner.coeff, &period) || period % *d != 0) continue;
      dividend.replace_term(j, flat(mod->a), inner.coeff);
      Linear value = divide(std::move(dividend), *d, type);
      value.add(quotient(mod->a, *m, type), -(period / *d));
      sum.replace_term(i, value, term.coeff);
      return !sum.bad;
    }
  }
  return false;
}

/// Expands products of quotients: b (x // b) = x - x % b, also where b is no constant; then remainders cancel.
bool Engine::cancels_after_expanding_quotients(const Linear& sum) {
  Linear expanded_sum = expanded(sum), result = Linear::of_int(expanded_sum.constant);
  bool changed = false;
  for (const Term& term : expanded_sum.terms) {
    const Mul* mul = term.atom.as<Mul>();
    const FloorDiv* div = mul ? (mul->a.is<FloorDiv>() ? mul->a.as<FloorDiv>() : mul->b.as<FloorDiv>()) : nullptr;
    const Expr* other = !div ? nullptr : mul->a.is<FloorDiv>() ? &mul->b : &mul->a;
    Linear divisor = div ? flat(div->b) : Linear();
    int64_t content = div ? gcd(divisor.content(), divisor.constant) : 0;
    if (content == 0 || divisor.bad || term.coeff % content != 0 ||
        !(fp(*other) * Fingerprint::of_int(content) == divisor.fingerprint())) {
      result.add(term.atom, term.fp, term.coeff);
      continue;
    }
    changed = true;
    result.add(flat(div->a), term.coeff / content);
    Expr rest = make<FloorMod>({div->a, div->b});
    result.add(rest, fp(rest), -(term.coeff / content));
  }
  if (!changed || result.bad) return false;
  while (join_remainders(result)) {
  }
  return result.is_zero() || result.fingerprint().is_zero();
}

bool Engine::prove(const Expr& condition) {
  if (const IntImm* imm = condition.as<IntImm>()) return imm->value != 0;
  std::optional<bool> known;
  if (const LT* e = condition.as<LT>()) known = plain_order(e->a, e->b, false);
  if (const LE* e = condition.as<LE>()) known = plain_order(e->a, e->b, true);
  if (const GT* e = condition.as<GT>()) known = plain_order(e->b, e->a, false);
  if (const GE* e = condition.as<GE>()) known = plain_order(e->b, e->a, true);
  if (const EQ* e = condition.as<EQ>()) known = plain_equality(e->a, e->b);
  if (known) return *known;
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
  // simplify() keeps > and >= in comparisons of data.
  if (const GT* e = simple.as<GT>()) return order(e->b, e->a, false);
  if (const GE* e = simple.as<GE>()) return order(e->b, e->a, true);
  if (const EQ* e = simple.as<EQ>()) return is_index(e->a.dtype()) && prove_equal(e->a, e->b);
  if (const NE* e = simple.as<NE>()) return order(e->a, e->b, false) || order(e->b, e->a, false);
  return false;
}

}  // namespace tilewright::arith
