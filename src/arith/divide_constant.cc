// Division of sums by a positive constant. The theorems, for integers and c, d > 0:
//
//   T1  (c q + r) // c = q + r // c              (c q + r) % c = r % c
//   T2  (g s + t) // (g d) = (s + k) // d        where t // g = k for every t that occurs
//       (g s + t) % (g d) = g ((s + k) % d) + (t - k g)
//   T3  (x // c) // d = x // (c d)               (x // c + k) // d = (x + k c) // (c d)
//   T4  (x // c) % d = x % (c d) // c            (x % (c d)) % c = x % c
//   T7  f(t) = f(l) + (f(l + 1) - f(l)) (t - l)  where t is l or l + 1, whatever f is
//
// A dividend is a value of its type, so one that is made must fit where the one that was given does: T1 keeps a part of
// the terms and moves the constant, T3 and T4 make new sums, and are used only where the new dividend stays inside the
// type, as proved from ranges (stays_inside).
#include "arith/digit.h"
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::arith {

std::optional<DividedDigit> as_digit(const Expr& atom) {
  DividedDigit digit;
  Expr inner = atom;
  if (const FloorDiv* div = inner.as<FloorDiv>()) {
    auto divisor = const_int(div->b);
    if (!divisor || *divisor <= 0) return std::nullopt;
    digit.divisor = *divisor;
    inner = div->a;
  }
  if (const FloorMod* mod = inner.as<FloorMod>()) {
    auto modulus = const_int(mod->b);
    if (modulus && *modulus > 0 && *modulus % digit.divisor == 0) {
      digit.modulus = *modulus;
      inner = mod->a;
    }
  }
  if (digit.modulus == 0 && digit.divisor == 1) return std::nullopt;
  digit.source = inner;
  return digit;
}

namespace {

/// Theorem T2: the divisors g of c to try, larger first, from the coefficients of the dividend.
std::vector<int64_t> groupings(const Linear& dividend, int64_t divisor) {
  std::vector<int64_t> result;
  for (const Term& term : dividend.terms) {
    int64_t g = gcd(term.coeff, divisor);
    if (g > 1 && g < divisor && !is_contained(result, g)) result.push_back(g);
  }
  std::sort(result.rbegin(), result.rend());
  return result;
}

/// g s + t: the terms that are multiples of g, divided by it, and the others with the constant.
void group(const Linear& dividend, int64_t g, Linear* s, Linear* t) {
  t->constant = dividend.constant;
  for (const Term& term : dividend.terms) {
    if (term.coeff % g == 0) {
      s->terms.push_back({term.atom, term.coeff / g, term.fp});
    } else {
      t->terms.push_back(term);
    }
  }
}
}  // namespace

/// Whether the sum may be computed in the type. A variable of which no range is known, or only one as wide as its type,
/// is taken to be small, with its product a quarter of the largest number at most; a range is taken at its word. Data
/// may be any number of their type. If the sum is a part of `dividend`, which is a number of the type, then it is not
/// above the largest number where what was removed is not negative, and not below the smallest one where that is not
/// positive.
bool Engine::stays_inside(const Linear& sum, DataType type, const Linear& dividend) {
  ConstIntBound whole = ConstIntBound::of_type(type), range = sum_bound(sum);
  if (range.is_finite() && range.within(whole)) return true;
  if (sum.single_atom()) return true;
  auto [low, high] = ends_of(sum, type);
  if (low >= int_min(type) && high <= int_max(type)) return true;
  const Linear removed = dividend - sum;
  if (removed.bad) return false;
  auto [least, most] = ends_of(removed, type);
  return (low >= int_min(type) || most <= 0) && (high <= int_max(type) || least >= 0);
}

/// The ends of a sum under the assumptions of stays_inside().
std::pair<__int128, __int128> Engine::ends_of(const Linear& sum, DataType type) {
  __int128 low = sum.constant, high = sum.constant;
  for (const Term& term : sum.terms) {
    const Ends ends = reads_data(term.atom) ? Ends{true, true} : known_ends(term.atom);
    const ConstIntBound range = bound(term.atom);
    auto reach = [&](bool known, int64_t end, int sign) {
      constexpr __int128 kSmall = __int128{1} << 21;
      if (known) return __int128{end} * term.coeff;
      __int128 most = kSmall * (term.coeff < 0 ? -term.coeff : term.coeff);
      return std::min<__int128>(most, int_max(type) / 4) * (term.coeff < 0 ? -sign : sign);
    };
    const __int128 a = reach(ends.low, range.has_min() ? range.min_value : int_min(term.atom.dtype()), -1);
    const __int128 b = reach(ends.high, range.max_value, 1);
    low += std::min(a, b);
    high += std::max(a, b);
  }
  return {low, high};
}

/// The known ends of the range of a variable. For another expression: both, if those of all its variables are known. A
/// deep one is taken at its word, too: each of its divisions asks anew.
Engine::Ends Engine::known_ends(const Expr& e) {
  constexpr uint32_t kDeep = 64;
  if (e.is<IntImm>() || e.depth() > kDeep) return {true, true};
  if (const FloorMod* mod = e.as<FloorMod>(); mod && mod->b.is<IntImm>()) return {true, true};
  if (e.is<Var>() || e.is<BufferLoad>()) {
    ConstIntBound range = bound(e);
    const VarInfo* known = info(e);
    if (known && known->facts.empty()) return {true, true};
    // Ignore a bound that only follows from n being less than the largest number of its type.
    return {range.min_value > int_min(e.dtype()) / 2, range.max_value < int_max(e.dtype()) / 2};
  }
  bool all = true;
  for_each_child(e, [&](const NodeRef& child, Role) {
    if (!all || child.sort() != Sort::kExpr || child.is<Op>()) return;
    Ends ends = known_ends(Expr(child));
    all = ends.low && ends.high;
  });
  return {all, all};
}

/// Theorem T7 for a sum of one term.
std::optional<Linear> Engine::line_of(const Linear& sum, const std::function<int64_t(int64_t)>& f) {
  if (sum.terms.size() != 1) return std::nullopt;
  const Term& term = sum.terms[0];
  ConstIntBound range = bound(term.atom);
  if (!range.is_finite() || range.min_value + 1 != range.max_value) return std::nullopt;
  int64_t low = 0, high = 0;
  if (!mul_fits(term.coeff, range.min_value, &low) || !add_fits(low, sum.constant, &low) ||
      !add_fits(low, term.coeff, &high)) {
    return std::nullopt;
  }
  int64_t at_low = f(low), step = f(high) - at_low;
  Linear line = Linear::of_int(at_low);
  line.add(term.atom, term.fp, step);
  line.add_constant(-range.min_value, step);
  return line.bad ? std::nullopt : std::optional(line);
}

Linear Engine::divide(Linear dividend, int64_t divisor, DataType type) {
  if (divisor == 1 || dividend.bad) return dividend;
  // T1
  Linear whole, rest;
  for (const Term& term : dividend.terms) {
    if (term.coeff % divisor == 0) {
      whole.terms.push_back({term.atom, term.coeff / divisor, term.fp});
    } else {
      rest.terms.push_back(term);
    }
  }
  whole.constant = floor_div(dividend.constant, divisor);
  rest.constant = floor_mod(dividend.constant, divisor);
  if (!rest.terms.empty() && !stays_inside(rest, type, dividend)) {
    whole.constant = dividend.constant / divisor;
    rest.constant = dividend.constant % divisor;
    if (!stays_inside(rest, type, dividend)) {
      whole = Linear();
      rest = dividend;
    }
  }
  if (rest.terms.empty()) return whole;
  ConstIntBound range = bound(rest);
  if (range.is_finite()) {
    int64_t low = floor_div(range.min_value, divisor);
    if (low == floor_div(range.max_value, divisor)) {
      whole.add_constant(low);
      return whole;
    }
  }
  if (auto line = line_of(rest, [&](int64_t value) { return floor_div(value, divisor); })) {
    whole.add(*line);
    return whole;
  }
  // T1 with a part of a coefficient, where that ends the division: 9 o // 2 = 4 o for o in [0, 2).
  Linear multiples, small;
  small.constant = rest.constant;
  for (const Term& term : rest.terms) {
    if (int64_t times = term.coeff / divisor) multiples.terms.push_back({term.atom, times, term.fp});
    small.terms.push_back({term.atom, term.coeff % divisor, term.fp});
  }
  if (!multiples.terms.empty()) {
    ConstIntBound left = bound(small);
    if (left.is_finite() && floor_div(left.min_value, divisor) == floor_div(left.max_value, divisor)) {
      multiples.add_constant(floor_div(left.min_value, divisor));
      whole.add(multiples);
      return whole;
    }
  }
  for (int64_t g : groupings(rest, divisor)) {  // T2
    Linear s, t;
    group(rest, g, &s, &t);
    ConstIntBound inner = bound(t);
    if (!inner.is_finite() || floor_div(inner.min_value, g) != floor_div(inner.max_value, g)) continue;
    s.add_constant(floor_div(inner.min_value, g));
    whole.add(divide(std::move(s), divisor / g, type));
    return whole;
  }
  whole.add(quotient_atom(rest, divisor, type));
  return whole;
}

Linear Engine::quotient_atom(const Linear& dividend, int64_t divisor, DataType type) {
  Linear rest = dividend;
  // A residue that never changes floor(. / divisor) goes: (x + 1) // 4 with x a multiple of 4.
  if (ModularSet set = residues(rest); set.coeff > 1) {
    int64_t excess = floor_mod(set.base, gcd(set.coeff, divisor));
    if (excess <= rest.constant) rest.add_constant(-excess);
  }
  if (rest.terms.size() == 1 && rest.terms[0].coeff == 1) {  // T3
    const Expr& atom = rest.terms[0].atom;
    auto split = as_digit(atom);
    int64_t product = 0, shift = 0;
    if (split && split->divisor > 1 && mul_fits(split->divisor, divisor, &product) && fits(product, type) &&
        mul_fits(rest.constant, split->divisor, &shift)) {
      Linear inner;
      Expr source = split->source;
      if (split->modulus == 0) {
        inner = flat(source);
      } else {
        inner = atom_of(atom.as<FloorDiv>()->a);
      }
      inner.add_constant(shift);
      if (shift == 0 || stays_inside(inner, type)) return divide(std::move(inner), product, type);
    }
  }
  if (!fits(divisor, type)) return Linear::failed();
  auto expr = to_expr(rest, type);
  if (!expr) return Linear::failed();
  return atom_of(make<FloorDiv>({*expr, int_imm(type, divisor)}));
}

/// Returns a sum that is congruent to the dividend modulo the divisor: by T1, and with `merge` also by T4. Without
/// `merge`, coefficients and the constant keep their signs, which gives tighter bounds than the residues.
Linear Engine::residue(const Linear& dividend, int64_t divisor, bool merge) {
  Linear rest;
  rest.constant = dividend.constant % divisor;
  auto add = [&](auto& self, const Term& term, int64_t scale) -> void {
    int64_t coeff = 0, product = 0;
    if (!mul_fits(term.coeff % divisor, scale, &coeff)) rest.bad = true;
    coeff %= divisor;
    if (coeff == 0) return;
    const FloorMod* inner = merge ? term.atom.as<FloorMod>() : nullptr;
    auto modulus = inner ? const_int(inner->b) : std::nullopt;
    if (!modulus || !mul_fits(*modulus, coeff, &product) || product % divisor != 0) {
      return rest.add(term.atom, term.fp, coeff);
    }
    Linear source = flat(inner->a);
    if (source.bad) return rest.add(term.atom, term.fp, coeff);
    rest.add_constant(source.constant % divisor, coeff);
    for (const Term& part : source.terms) self(self, part, coeff);
  };
  for (const Term& term : dividend.terms) add(add, term, 1);
  if (rest.bad) return Linear::failed();
  rest.constant = merge ? floor_mod(rest.constant, divisor) : rest.constant % divisor;
  for (Term& term : rest.terms) term.coeff %= divisor;
  std::erase_if(rest.terms, [](const Term& term) { return term.coeff == 0; });
  return rest;
}

Linear Engine::modulo(Linear dividend, int64_t divisor, DataType type) {
  if (dividend.bad) return dividend;
  if (divisor == 1) return Linear::of_int(0);
  Linear rest = residue(dividend, divisor, true);
  if (!rest.bad && !rest.terms.empty() && !stays_inside(rest, type, dividend)) {
    rest = residue(dividend, divisor, false);
    if (!stays_inside(rest, type, dividend)) rest = dividend;
  }
  if (rest.bad) return rest;
  if (rest.terms.empty()) return Linear::of_int(floor_mod(rest.constant, divisor));
  if (ModularSet set = residues(rest); set.coeff % divisor == 0) return Linear::of_int(floor_mod(set.base, divisor));
  ConstIntBound range = bound(rest);
  if (range.is_finite()) {
    int64_t low = floor_div(range.min_value, divisor);
    if (low == floor_div(range.max_value, divisor)) {
      rest.add_constant(-low, divisor);
      return rest;
    }
  }
  if (auto line = line_of(rest, [&](int64_t value) { return floor_mod(value, divisor); })) return *line;
  for (int64_t g : groupings(rest, divisor)) {  // T2
    Linear s, t;
    group(rest, g, &s, &t);
    ConstIntBound inner = bound(t);
    if (!inner.is_finite() || floor_div(inner.min_value, g) != floor_div(inner.max_value, g)) continue;
    int64_t k = floor_div(inner.min_value, g);
    s.add_constant(k);
    Linear result = modulo(std::move(s), divisor / g, type);
    result.scale(g);
    t.add_constant(-k, g);
    result.add(t);
    return result;
  }
  return remainder_atom(rest, divisor, type);
}

Linear Engine::remainder_atom(const Linear& dividend, int64_t divisor, DataType type) {
  if (const Term* term = dividend.single_atom()) {  // T4
    auto split = as_digit(term->atom);
    int64_t modulus = 0;
    if (split && split->divisor > 1 && mul_fits(split->divisor, divisor, &modulus) && fits(modulus, type) &&
        (split->modulus == 0 || split->modulus % modulus == 0)) {
      Linear inner = modulo(flat(split->source), modulus, type);
      return divide(std::move(inner), split->divisor, type);
    }
  }
  if (!fits(divisor, type)) return Linear::failed();
  auto expr = to_expr(dividend, type);
  if (!expr) return Linear::failed();
  return atom_of(make<FloorMod>({*expr, int_imm(type, divisor)}));
}

}  // namespace tilewright::arith
