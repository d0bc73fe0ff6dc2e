// Joins terms of a sum that determine one another: a quotient and its remainder, two quotients, selects of one
// condition.
//
// The identity of each function stands above it, for integers, c, d > 0 and b != 0. T1 to T4 and T7 are those of
// divide_constant.cc. T8 creates a dividend, so it needs a proof that the new dividend stays inside the type. T5 and T6
// restore sums that were there. In T9 the sum of the arm that is not selected may leave the type, which has no effect,
// since sums wrap.
#include "arith/digit.h"
#include "arith/engine.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// x // y or x % y, of either rounding.
struct DivisionForm {
  const Expr *a = nullptr, *b = nullptr;
  bool is_quotient = false, floors = false;
  explicit operator bool() const { return a != nullptr; }
};

DivisionForm as_division(const Expr& e) {
  const bool floors = e.is<FloorDiv>() || e.is<FloorMod>();
  if (!floors && !e.is<Div>() && !e.is<Mod>()) return {};
  const auto [a, b] = binary_operands(e);
  return {a, b, e.is<FloorDiv>() || e.is<Div>(), floors};
}

bool is_constant_floor_division(const DivisionForm& division) { return division.floors && division.b->is<IntImm>(); }

Expr quotient_of(const DivisionForm& d) { return make_binary(d.floors ? Kind::kFloorDiv : Kind::kDiv, *d.a, *d.b); }
Expr remainder_of(const DivisionForm& d) { return make_binary(d.floors ? Kind::kFloorMod : Kind::kMod, *d.a, *d.b); }

/// A select or if_then_else, or a product with one.
struct SelectForm {
  Expr condition, true_value, false_value;
  const Call* call = nullptr;
};

std::optional<SelectForm> as_select(const Expr& e) {
  if (const Select* select = e.as<Select>()) {
    return SelectForm{select->condition, select->true_value, select->false_value, nullptr};
  }
  if (const Mul* mul = e.as<Mul>()) {
    auto inner = as_select(mul->a);
    const Expr& factor = inner ? mul->b : mul->a;
    if (!inner) inner = as_select(mul->b);
    if (!inner) return std::nullopt;
    return SelectForm{inner->condition, inner->true_value * factor, inner->false_value * factor, inner->call};
  }
  const Call* call = e.as<Call>();
  if (!call || intrinsic_of(*call) != Intrinsic::k_if_then_else) return std::nullopt;
  return SelectForm{call->arg(0), call->arg(1), call->arg(2), call};
}

bool is_select(const Expr& e) {
  if (const Mul* mul = e.as<Mul>()) return is_select(mul->a) || is_select(mul->b);
  return e.is<Select>() || is_call_to(e, Intrinsic::k_if_then_else);
}

/// Subtracts `count` times the dividend. Nothing if one of its terms does not occur as often.
std::optional<Linear> subtract_dividend(const Linear& sum, const Linear& dividend, int64_t count) {
  const bool is_there = all_of(dividend.terms, [&](const Term& part) {
    const Term* found = sum.find(part.fp);
    int64_t wanted = 0;
    return found && mul_fits(part.coeff, count, &wanted) && found->coeff == wanted;
  });
  if (!is_there) return std::nullopt;
  Linear result = sum;
  for (const Term& part : dividend.terms) result.add(part.atom, part.fp, -part.coeff * count);
  result.add_constant(-dividend.constant, count);
  return result;
}

}  // namespace

/// Joins terms until no two can be joined.
void Engine::recombine(Linear& sum) {
  if (sum.bad) return;
  if (sum.terms.size() < 2) return drop_exact_quotients(sum);
  distribute_products(sum);
  // The counts spare a plain sum all of the searches below.
  int remainders = 0, quotients = 0, general = 0, selects = 0, products = 0, casts = 0;
  for (const Term& term : sum.terms) {
    if (DivisionForm division = as_division(term.atom)) {
      (division.is_quotient ? quotients : remainders) += 1;
      general += !is_constant_floor_division(division);
    } else {
      selects += is_select(term.atom);
      products += term.atom.is<Mul>();
      casts += term.atom.is<Cast>();
    }
  }
  if (quotients > 0 && casts > 0 && join_rounding(sum)) return recombine(sum);
  if (quotients > 0 && join_quotient_and_remainder(sum)) return recombine(sum);
  if (general + products > 0 && join_general(sum)) return recombine(sum);
  if (quotients > 1 && join_quotients(sum)) return recombine(sum);
  if (remainders > 1 && join_remainders(sum)) return recombine(sum);
  if (selects > 1 && merge_selects(sum)) return recombine(sum);
  if (quotients + remainders > 0 && exchange_quotient_and_remainder(sum)) return recombine(sum);
  drop_exact_quotients(sum);
}

/// c (x // c) + y % c -> x, where x - y is a multiple of c
/// d (x // (c d)) + (x % (c d)) // c -> x // c                                                  (T5)
bool Engine::join_quotient_and_remainder(Linear& sum) {
  auto may_join = [](const Term& term) {
    const FloorDiv* div = term.atom.as<FloorDiv>();
    return term.atom.is<FloorMod>() || (div && div->a.is<FloorMod>());
  };
  for (size_t i : indices_of(sum.terms)) {
    if (!may_join(sum.terms[i])) continue;
    const Term low = sum.terms[i];
    auto split = as_digit(low.atom);
    if (!split || split->modulus == 0) continue;
    // low = scale * (x % modulus // divisor); its partner is scale * (modulus / divisor) * (x // modulus ...).
    int64_t partner_coeff = 0;
    if (!mul_fits(low.coeff, split->modulus / split->divisor, &partner_coeff)) continue;
    for (size_t j : indices_of(sum.terms)) {
      const Term high = sum.terms[j];
      if (j == i || high.coeff != partner_coeff) continue;
      auto other = as_digit(high.atom);
      if (!other || other->divisor != split->modulus) continue;
      Linear difference = flat(other->source) - flat(split->source);
      if (difference.bad) continue;
      bool same = difference.is_zero();
      bool multiple = split->divisor == 1 && other->modulus == 0 &&
                      all_of(difference.terms, [&](const Term& term) { return term.coeff % split->modulus == 0; }) &&
                      difference.constant % split->modulus == 0;
      if (!same && !multiple) continue;
      DataType type = high.atom.dtype();
      Linear joined = flat(other->source);
      if (other->modulus != 0) joined = modulo(std::move(joined), other->modulus, type);
      joined = divide(std::move(joined), split->divisor, type);
      if (joined.bad) continue;
      sum.terms[i].coeff = 0;
      sum.replace_term(j, joined, low.coeff);
      return true;
    }
  }
  return false;
}

/// b (x // b) + x % b -> x, for both roundings and any divisor                                  (T5)
bool Engine::join_general(Linear& sum) {
  auto join_in = [&](Linear& in) {
    for (size_t i : indices_of(in.terms)) {
      const Term low = in.terms[i];
      DivisionForm division = as_division(low.atom);
      if (!division || division.is_quotient || is_constant_floor_division(division)) continue;
      Fingerprint wanted = fp(quotient_of(division)) * fp(*division.b) * Fingerprint::of_int(low.coeff);
      for (size_t j : indices_of(in.terms)) {
        const Term& high = in.terms[j];
        if (j == i || !(high.fp * Fingerprint::of_int(high.coeff) == wanted)) continue;
        Linear dividend = flat(*division.a);
        if (dividend.bad) return false;
        in.terms[i].coeff = 0;
        in.replace_term(j, dividend, low.coeff);
        return !in.bad;
      }
    }
    return false;
  };
  bool remainders = false, sums = false;
  for (const Term& term : sum.terms) {
    DivisionForm division = as_division(term.atom);
    remainders |= division && !division.is_quotient && !is_constant_floor_division(division);
    const Mul* mul = term.atom.as<Mul>();
    sums |= mul && (mul->a.is<Add>() || mul->a.is<Sub>() || mul->b.is<Add>() || mul->b.is<Sub>());
  }
  if (remainders && join_in(sum)) return true;
  if (remainders && sums) {  // ((x // b) + z) b + x % b
    Linear out = expanded(sum);
    if (join_in(out) && !out.bad && out.terms.size() <= sum.terms.size()) {
      sum = std::move(out);
      return true;
    }
  }
  return exchange_general(sum);
}

/// x - b (x // b) -> x % b
/// x - x % b -> b (x // b), for both roundings and any divisor                                  (T6)
bool Engine::exchange_general(Linear& sum) {
  for (const Term& term : sum.terms) {
    auto exchange = [&](const DivisionForm& division, int64_t count) {  // `count`: number of dividends
      Linear dividend = flat(*division.a);
      if (dividend.bad || count == 0 || dividend.terms.empty()) return false;
      std::optional<Linear> next = subtract_dividend(sum, dividend, count);
      if (!next) return false;
      next->add(term.atom, term.fp, -term.coeff);
      if (division.is_quotient) {
        Expr remainder = remainder_of(division);
        next->add(remainder, fp(remainder), count);
      } else {
        collect_product(quotient_of(division), *division.b, count, *next);
      }
      if (next->bad || next->terms.size() >= sum.terms.size()) return false;
      sum = std::move(*next);
      return true;
    };
    DivisionForm division = as_division(term.atom);
    if (division && !division.is_quotient) {
      if (!is_constant_floor_division(division) && exchange(division, -term.coeff)) return true;
      continue;
    }
    // A product of a quotient and its divisor, of which a constant part has gone into the coefficient.
    std::vector<Expr> factors{term.atom};
    for (size_t i = 0; i < factors.size(); ++i) {
      if (const Mul* mul = factors[i].as<Mul>()) {
        factors.push_back(mul->a);
        factors.push_back(mul->b);
        continue;
      }
      DivisionForm of_factor = as_division(factors[i]);
      if (!of_factor || !of_factor.is_quotient || is_constant_floor_division(of_factor)) continue;
      Linear divisor = flat(*of_factor.b);
      int64_t content = gcd(divisor.content(), divisor.constant);
      if (divisor.bad || content == 0 || term.coeff % content != 0) continue;
      int64_t count = -(term.coeff / content);
      bool whole =
          fp(factors[i]) * fp(*of_factor.b) * Fingerprint::of_int(-count) == term.fp * Fingerprint::of_int(term.coeff);
      if (whole && exchange(of_factor, count)) return true;
    }
  }
  return false;
}

/// x % c + y % c -> c - 1, where x + y + 1 is a multiple of c                                   (T8)
bool Engine::join_remainders(Linear& sum) {
  for (size_t i : indices_of(sum.terms)) {
    const FloorMod* first = sum.terms[i].atom.as<FloorMod>();
    if (!first) continue;
    for (size_t j = i + 1; j < sum.terms.size(); ++j) {
      const FloorMod* second = sum.terms[j].atom.as<FloorMod>();
      if (!second || sum.terms[i].coeff != sum.terms[j].coeff || first->a.dtype() != second->a.dtype()) continue;
      if (!(fp(first->b) == fp(second->b)) || bound(first->b).min_value < 1) continue;
      Linear both = flat(first->a);
      both.add(flat(second->a));
      both.add_constant(1);
      if (both.terms.size() > 1 || !divided(both, first->b, first->b.dtype(), false).is_zero()) continue;
      Linear last = flat(first->b);
      last.add_constant(-1);
      sum.terms[j].coeff = 0;
      sum.replace_term(i, last, sum.terms[i].coeff);
      return true;
    }
  }
  return false;
}

/// x // b - y // b -> (x - y + y % b) // b
/// x // b + y // b -> (x + y - y % b) // b                                                      (T8)
bool Engine::join_quotients(Linear& sum) {
  for (size_t i : indices_of(sum.terms)) {
    const FloorDiv* first = sum.terms[i].atom.as<FloorDiv>();
    if (!first) continue;
    for (size_t j = i + 1; j < sum.terms.size(); ++j) {
      const FloorDiv* second = sum.terms[j].atom.as<FloorDiv>();
      if (!second || first->a.dtype() != second->a.dtype() || !(fp(first->b) == fp(second->b))) continue;
      const int64_t c = sum.terms[i].coeff, d = sum.terms[j].coeff;
      if (c != d && c != -d) continue;
      if (auto joined = joined_quotients(flat(first->a), flat(second->a), first->b, c == d)) {
        sum.terms[j].coeff = 0;
        sum.replace_term(i, *joined, c);
        return true;
      }
    }
  }
  return false;
}

/// x // c + (x % c != 0) -> (x + c - 1) // c                                                    (T8)
bool Engine::join_rounding(Linear& sum) {
  for (size_t i : indices_of(sum.terms)) {
    const Cast* cast = sum.terms[i].atom.as<Cast>();
    const NE* differs = cast ? cast->value.as<NE>() : nullptr;
    const FloorMod* remainder = differs ? differs->a.as<FloorMod>() : nullptr;
    if (!remainder || const_int(differs->b) != 0 || const_int(remainder->b).value_or(0) < 1) continue;
    const DataType type = remainder->a.dtype();
    const Fingerprint wanted = fp(make<FloorDiv>({remainder->a, remainder->b}));
    for (size_t j : indices_of(sum.terms)) {
      const bool is_partner = sum.terms[j].fp == wanted && sum.terms[j].coeff == sum.terms[i].coeff;
      if (!is_partner || type != sum.terms[i].atom.dtype()) continue;
      Linear dividend = flat(remainder->a);
      dividend.add_constant(*const_int(remainder->b) - 1);
      if (dividend.bad || !stays_inside(dividend, type)) continue;
      Linear rounded = divided(std::move(dividend), remainder->b, type, true);
      if (rounded.bad) continue;
      sum.terms[i].coeff = 0;
      sum.replace_term(j, rounded, sum.terms[j].coeff);
      return true;
    }
  }
  return false;
}

/// One quotient for x // b + y // b (`add`) or x // b - y // b. Nothing where that is not simpler: it is where x - y is
/// shorter than x, or x + y a multiple of b but for a constant.
std::optional<Linear> Engine::joined_quotients(Linear x, Linear y, const Expr& divisor, bool add) {
  DataType type = divisor.dtype();
  if (x.bad || y.bad) return std::nullopt;
  // y is the one whose remainder stays: the shorter one, then the one with the smaller constant.
  bool swapped = x.terms.size() != y.terms.size() ? x.terms.size() < y.terms.size() : x.constant < y.constant;
  if (swapped) std::swap(x, y);
  Linear dividend = add ? x : x - y, whole;
  if (add) {
    dividend.add(y);
    auto d = const_int(divisor);
    if (dividend.bad || (d ? *d <= 0 || dividend.content() % *d != 0 : !dividend.terms.empty())) return std::nullopt;
    if (d) {
      whole = dividend;
      whole.constant = 0;
      whole.divide_exactly(*d);
      dividend = Linear::of_int(dividend.constant);
    }
  } else if (dividend.terms.size() >= x.terms.size()) {
    return std::nullopt;
  }
  Linear remainder = divided(y, divisor, type, false);
  dividend.add(remainder, add ? -1 : 1);
  if (dividend.bad || !stays_inside(dividend, type)) return std::nullopt;
  whole.add(divided(std::move(dividend), divisor, type, true));
  if (whole.bad || whole.terms.size() > 1 + (add ? x.terms.size() : 0)) return std::nullopt;
  if (swapped && !add) whole.scale(-1);
  return whole;
}

/// s select(p, x, y) + t select(p, z, w) -> select(p, s x + t z, s y + t w)                     (T9)
bool Engine::merge_selects(Linear& sum) {
  for (size_t i : indices_of(sum.terms)) {
    std::optional<SelectForm> first = as_select(sum.terms[i].atom);
    if (!first || first->condition.dtype().is_vector()) continue;
    for (size_t j = i + 1; j < sum.terms.size(); ++j) {
      std::optional<SelectForm> second = as_select(sum.terms[j].atom);
      if (!second || (first->call == nullptr) != (second->call == nullptr)) continue;
      bool same = fp(first->condition) == fp(second->condition);
      bool opposite = !same && fp(simplify(make<Not>({first->condition}))) == fp(second->condition);
      if (!same && !opposite) continue;
      if (opposite) std::swap(second->true_value, second->false_value);
      DataType type = sum.terms[i].atom.dtype();
      if (type != sum.terms[j].atom.dtype()) continue;
      const int64_t g = gcd(sum.terms[i].coeff, sum.terms[j].coeff);
      auto arm = [&](const Expr& x, const Expr& y) {
        Linear both;
        both.add(linear(x), sum.terms[i].coeff / g);
        both.add(linear(y), sum.terms[j].coeff / g);
        recombine(both);
        return to_expr(both, type);
      };
      auto t = arm(first->true_value, second->true_value), f = arm(first->false_value, second->false_value);
      if (!t || !f) continue;
      Expr merged = first->call ? Expr(make<Call>({type, first->call->op, {first->condition, *t, *f}}))
                                : Expr(make<Select>({first->condition, *t, *f}));
      Linear result = flat(simplify(merged));
      if (result.bad) continue;
      sum.terms[j].coeff = 0;
      sum.replace_term(i, result, g);
      return true;
    }
  }
  return false;
}

/// x - c (x // c) -> x % c
/// x - x % c -> c (x // c), where terms vanish                                                  (T6)
bool Engine::exchange_quotient_and_remainder(Linear& sum) {
  for (const Term& term : sum.terms) {
    const FloorDiv* div = term.atom.as<FloorDiv>();
    const FloorMod* mod = term.atom.as<FloorMod>();
    if (!div && !mod) continue;
    auto divisor = const_int(div ? div->b : mod->b);
    if (!divisor || *divisor <= 0 || (div && term.coeff % *divisor != 0)) continue;
    Linear dividend = flat(div ? div->a : mod->a);
    int64_t count = div ? -(term.coeff / *divisor) : -term.coeff;  // number of dividends
    if (dividend.bad || count == 0) continue;
    std::optional<Linear> next = subtract_dividend(sum, dividend, count);
    if (!next) continue;
    DataType type = term.atom.dtype();
    Linear other = div ? modulo(dividend, *divisor, type) : divide(dividend, *divisor, type);
    if (mod) other.scale(*divisor);
    auto at = find_if(next->terms, [&](const Term& t) { return t.fp == term.fp; });
    if (at == next->terms.end()) continue;
    next->replace_term(static_cast<size_t>(at - next->terms.begin()), other, count);
    if (next->bad || next->terms.size() >= sum.terms.size()) continue;
    sum = std::move(*next);
    return true;
  }
  return false;
}

/// c (x // c) -> x - r, where x % c is known to be r
void Engine::drop_exact_quotients(Linear& sum) {
  while (drop_exact_quotient(sum)) {
  }
}

bool Engine::drop_exact_quotient(Linear& sum) {
  for (size_t i : indices_of(sum.terms)) {
    const Term term = sum.terms[i];
    const FloorDiv* div = term.atom.as<FloorDiv>();
    auto divisor = div ? const_int(div->b) : std::nullopt;
    if (!divisor || *divisor <= 0 || term.coeff % *divisor != 0) continue;
    ModularSet set = residues(div->a);
    if (set.coeff % *divisor != 0) continue;
    sum.replace_term(i, flat(div->a), term.coeff / *divisor);
    sum.add_constant(-floor_mod(set.base, *divisor), term.coeff / *divisor);
    return true;
  }
  return false;
}

/// (x + y) z -> x z + y z, where that makes terms meet: (x + 1) * n - x * n
void Engine::distribute_products(Linear& sum) {
  int products = 0, of_sums = 0;
  for (const Term& term : sum.terms) {
    const Mul* mul = term.atom.as<Mul>();
    if (!mul) continue;
    ++products;
    auto is_sum = [](const Expr& e) { return e.is<Add>() || e.is<Sub>(); };
    of_sums += is_sum(mul->a) || is_sum(mul->b);
  }
  if (products < 2 || of_sums == 0) return;
  Linear out = expanded(sum);
  if (!out.bad && out.terms.size() < sum.terms.size()) sum = std::move(out);
}

}  // namespace tilewright::arith
