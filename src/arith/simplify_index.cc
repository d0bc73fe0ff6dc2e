// Sums, products and divisions of index expressions. The theorems, for integers and c, d > 0:
//
//   T1  (c q + r) // c = q + r // c              (c q + r) % c = r % c
//   T2  (g s + t) // (g d) = (s + k) // d        where t // g = k for every t that occurs
//       (g s + t) % (g d) = g ((s + k) % d) + (t - k g)
//   T3  (x // c) // d = x // (c d)               (x // c + k) // d = (x + k c) // (c d)
//   T4  (x // c) % d = x % (c d) // c            (x % (c d)) % c = x % c
//   T5  c (x // c) + y % c = x                   where x - y is a multiple of c
//       d (x // (c d)) + (x % (c d)) // c = x // c
//   T6  x - c (x // c) = x % c                   x - x % c = c (x // c)
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tilewright::arith {
namespace {

bool fits(int64_t value, DataType type) { return wrap_int(type, value) == value; }

/// x % modulus // divisor, with divisor | modulus; modulus 0: x // divisor; divisor 1: no division.
struct Split {
  Expr source;
  int64_t modulus = 0;
  int64_t divisor = 1;
};

std::optional<Split> as_split(const Expr& atom) {
  Split split;
  Expr inner = atom;
  if (const FloorDiv* div = inner.as<FloorDiv>()) {
    auto divisor = const_int(div->b);
    if (!divisor || *divisor <= 0) return std::nullopt;
    split.divisor = *divisor;
    inner = div->a;
  }
  if (const FloorMod* mod = inner.as<FloorMod>()) {
    auto modulus = const_int(mod->b);
    if (modulus && *modulus > 0 && *modulus % split.divisor == 0) {
      split.modulus = *modulus;
      inner = mod->a;
    }
  }
  if (split.modulus == 0 && split.divisor == 1) return std::nullopt;
  split.source = inner;
  return split;
}

}  // namespace

Expr Engine::simplify_index(const Expr& e) {
  if (auto operands = binary_operands(e)) {
    if (auto folded = fold_binary(e.kind(), *operands.a, *operands.b)) return *folded;
  }
  Linear sum = linear(e);
  if (!sum.bad) {
    if (auto result = to_expr(sum, e.dtype())) return *result;
  }
  return rebuild(e);
}

Linear Engine::linear(const Expr& e) {
  Linear sum;
  collect(e, 1, sum);
  recombine(sum);
  return sum;
}

Linear Engine::flat(const Expr& e) {
  Linear sum;
  collect_flat(e, 1, sum);
  return sum;
}

/// `e` is simplified already: only its sum is taken apart.
void Engine::collect_flat(const Expr& e, int64_t scale, Linear& out) {
  switch (e.kind()) {
    case Kind::kIntImm:
      return out.add_constant(e.as<IntImm>()->value, scale);
    case Kind::kAdd:
      collect_flat(e.as<Add>()->a, scale, out);
      return collect_flat(e.as<Add>()->b, scale, out);
    case Kind::kSub: {
      int64_t negated = 0;
      if (!sub_fits(0, scale, &negated)) out.bad = true;
      collect_flat(e.as<Sub>()->a, scale, out);
      return collect_flat(e.as<Sub>()->b, negated, out);
    }
    case Kind::kMul:
      if (const IntImm* imm = e.as<Mul>()->b.as<IntImm>()) {
        int64_t product = 0;
        if (!mul_fits(scale, imm->value, &product)) out.bad = true;
        return collect_flat(e.as<Mul>()->a, product, out);
      }
      break;
    case Kind::kCast:
      if (is_widening_index_cast(*e.as<Cast>())) return collect_flat(e.as<Cast>()->value, scale, out);
      break;
    default:
      break;
  }
  Fingerprint print = fp(e);
  // Two calls that change state are not twice one call.
  if (!is_index(e.dtype()) || fingerprints_.has_effect(e)) {
    out.bad = true;
    return;
  }
  out.add(e, print, scale);
}

void Engine::collect(const Expr& e, int64_t scale, Linear& out) {
  switch (e.kind()) {
    case Kind::kIntImm:
      return out.add_constant(e.as<IntImm>()->value, scale);
    case Kind::kVar: {
      const VarInfo* known = info(e);
      if (known && known->value.defined()) return collect_flat(known->value, scale, out);
      if (known || !bounds_.empty()) {
        ConstIntBound range = bound(e);
        if (range.is_single()) return out.add_constant(range.min_value, scale);
      }
      return out.add(e, fp(e), scale);
    }
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
    case Kind::kDiv:
    case Kind::kMod:
      break;
    case Kind::kCast:
      if (is_widening_index_cast(*e.as<Cast>())) return collect(e.as<Cast>()->value, scale, out);
      return collect_flat(simplify(e), scale, out);
    default:
      return collect_flat(simplify(e), scale, out);
  }
  // A sum that only this expression holds is taken apart in place; what others may ask for again is remembered.
  bool sum = e.is<Add>() || e.is<Sub>();
  if (sum && e.get()->use_count() == 1) {
    int64_t second = scale;
    if (e.is<Sub>() && !sub_fits(0, scale, &second)) out.bad = true;
    collect(e.is<Add>() ? e.as<Add>()->a : e.as<Sub>()->a, scale, out);
    return collect(e.is<Add>() ? e.as<Add>()->b : e.as<Sub>()->b, second, out);
  }
  if (const Linear* known = linears_.find(e)) return out.add(*known, scale);
  out.add(linears_.insert(e, compute_linear(e)), scale);
}

Linear Engine::compute_linear(const Expr& e) {
  Linear out;
  switch (e.kind()) {
    case Kind::kAdd:
      collect(e.as<Add>()->a, 1, out);
      collect(e.as<Add>()->b, 1, out);
      recombine(out);
      return out;
    case Kind::kSub:
      collect(e.as<Sub>()->a, 1, out);
      collect(e.as<Sub>()->b, -1, out);
      recombine(out);
      return out;
    case Kind::kMul:
      collect_product(e.as<Mul>()->a, e.as<Mul>()->b, 1, out);
      return out;
    case Kind::kFloorDiv:
    case Kind::kFloorMod: {
      bool quotient = e.is<FloorDiv>();
      const Expr& a = quotient ? e.as<FloorDiv>()->a : e.as<FloorMod>()->a;
      const Expr& b = quotient ? e.as<FloorDiv>()->b : e.as<FloorMod>()->b;
      Expr divisor = simplify(b);
      const IntImm* imm = divisor.as<IntImm>();
      if (!imm || imm->value == 0 || imm->value == std::numeric_limits<int64_t>::min()) {
        return divide_symbolic(linear(a), divisor, e.dtype(), quotient);
      }
      Linear dividend = linear(a);
      bool negative = imm->value < 0;  // a // -c = -a // c, a % -c = -(-a % c), where -a fits the type
      if (negative) {
        ConstIntBound range = bound(dividend);
        if (!range.has_min() || range.min_value <= int_min(e.dtype())) {
          return divide_symbolic(dividend, divisor, e.dtype(), quotient);
        }
        dividend.scale(-1);
      }
      int64_t magnitude = negative ? -imm->value : imm->value;
      if (quotient) return divide(std::move(dividend), magnitude, e.dtype());
      Linear rest = modulo(std::move(dividend), magnitude, e.dtype());
      if (negative) rest.scale(-1);
      return rest;
    }
    default:
      return truncating(e);
  }
}

// ---- products

void Engine::collect_product(const Expr& a, const Expr& b, int64_t scale, Linear& out) {
  DataType type = a.dtype();
  Linear x = linear(a), y = linear(b);
  if (x.bad || y.bad) {
    out.bad = true;
    return;
  }
  if (x.is_constant()) std::swap(x, y);
  if (y.is_constant()) {
    int64_t factor = 0;
    if (!mul_fits(y.constant, scale, &factor)) out.bad = true;
    return out.add(x, factor);
  }
  // Constant factors go out: (4 i + 8) * n = 4 ((i + 2) * n).
  for (Linear* side : {&x, &y}) {
    int64_t factor = gcd(side->content(), side->constant);
    if (side->terms[0].coeff < 0) factor = -factor;
    if (factor == 1) continue;
    side->divide_exactly(factor);
    if (!mul_fits(scale, factor, &scale)) out.bad = true;
  }
  auto left = to_expr(x, type), right = to_expr(y, type);
  if (!left || !right) {
    out.bad = true;
    return;
  }
  Expr product = make<Mul>({*left, *right});
  out.add(product, x.fingerprint() * y.fingerprint(), scale);
}

Linear Engine::expanded(const Linear& sum) {
  constexpr size_t kMaxTerms = 24;
  Linear result;
  result.bad = sum.bad;
  result.constant = sum.constant;
  for (const Term& term : sum.terms) {
    const Mul* mul = term.atom.as<Mul>();
    if (!mul || result.terms.size() > kMaxTerms) {
      result.add(term.atom, term.fp, term.coeff);
      continue;
    }
    Linear x = expanded(flat(mul->a)), y = expanded(flat(mul->b));
    size_t size = (x.terms.size() + 1) * (y.terms.size() + 1);
    bool trivial = x.single_atom() && y.single_atom();
    if (trivial || size > kMaxTerms || x.bad || y.bad) {
      result.add(term.atom, term.fp, term.coeff);
      continue;
    }
    Linear product;
    for (const Term& p : x.terms) {
      for (const Term& q : y.terms) {
        int64_t coeff = 0;
        if (!mul_fits(p.coeff, q.coeff, &coeff)) product.bad = true;
        Expr left = p.atom, right = q.atom;
        promote(left, right);
        product.add(make<Mul>({left, right}), p.fp * q.fp, coeff);
      }
    }
    for (const Term& p : x.terms) {
      int64_t coeff = 0;
      if (!mul_fits(p.coeff, y.constant, &coeff)) product.bad = true;
      product.add(p.atom, p.fp, coeff);
    }
    for (const Term& q : y.terms) {
      int64_t coeff = 0;
      if (!mul_fits(q.coeff, x.constant, &coeff)) product.bad = true;
      product.add(q.atom, q.fp, coeff);
    }
    product.add_constant(x.constant, y.constant);
    result.add(product, term.coeff);
  }
  return result;
}

// ---- division by a positive constant

Linear Engine::atom_of(const Expr& atom) { return Linear::of_atom(atom, fp(atom)); }

namespace {
Linear failed() {
  Linear result;
  result.bad = true;
  return result;
}

/// Theorem T2: the divisors g of c to try, larger first, from the coefficients of the dividend.
std::vector<int64_t> groupings(const Linear& dividend, int64_t divisor) {
  std::vector<int64_t> result;
  for (const Term& term : dividend.terms) {
    int64_t g = gcd(term.coeff, divisor);
    if (g > 1 && g < divisor && std::find(result.begin(), result.end(), g) == result.end()) result.push_back(g);
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

Linear Engine::divide(Linear dividend, int64_t divisor, DataType type) {
  if (divisor == 1 || dividend.bad) return dividend;
  // T1
  Linear whole, rest;
  whole.constant = floor_div(dividend.constant, divisor);
  rest.constant = floor_mod(dividend.constant, divisor);
  for (const Term& term : dividend.terms) {
    if (term.coeff % divisor == 0) {
      whole.terms.push_back({term.atom, term.coeff / divisor, term.fp});
    } else {
      rest.terms.push_back(term);
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
    auto split = as_split(atom);
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
      return divide(std::move(inner), product, type);
    }
  }
  if (!fits(divisor, type)) return failed();
  auto expr = to_expr(rest, type);
  if (!expr) return failed();
  return atom_of(make<FloorDiv>({*expr, int_imm(type, divisor)}));
}

Linear Engine::modulo(Linear dividend, int64_t divisor, DataType type) {
  if (dividend.bad) return dividend;
  if (divisor == 1) return Linear::of_int(0);
  // T1; a coefficient keeps its sign, which bounds like better than its residue. T4: x % (c d) is x modulo c.
  Linear rest;
  rest.constant = floor_mod(dividend.constant, divisor);
  auto add = [&](auto& self, const Term& term, int64_t scale) -> void {
    int64_t coeff = 0, product = 0;
    if (!mul_fits(term.coeff % divisor, scale, &coeff)) rest.bad = true;
    coeff %= divisor;
    if (coeff == 0) return;
    const FloorMod* inner = term.atom.as<FloorMod>();
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
  if (rest.bad) return failed();
  rest.constant = floor_mod(rest.constant, divisor);
  for (Term& term : rest.terms) term.coeff %= divisor;
  std::erase_if(rest.terms, [](const Term& term) { return term.coeff == 0; });
  if (rest.terms.empty()) return Linear::of_int(rest.constant);
  if (ModularSet set = residues(rest); set.coeff % divisor == 0) return Linear::of_int(floor_mod(set.base, divisor));
  ConstIntBound range = bound(rest);
  if (range.is_finite()) {
    int64_t low = floor_div(range.min_value, divisor);
    if (low == floor_div(range.max_value, divisor)) {
      rest.add_constant(-low, divisor);
      return rest;
    }
  }
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
    auto split = as_split(term->atom);
    int64_t modulus = 0;
    if (split && split->divisor > 1 && mul_fits(split->divisor, divisor, &modulus) && fits(modulus, type) &&
        (split->modulus == 0 || split->modulus % modulus == 0)) {
      Linear inner = modulo(flat(split->source), modulus, type);
      return divide(std::move(inner), split->divisor, type);
    }
  }
  if (!fits(divisor, type)) return failed();
  auto expr = to_expr(dividend, type);
  if (!expr) return failed();
  return atom_of(make<FloorMod>({*expr, int_imm(type, divisor)}));
}

/// Theorem T5 on the terms of a sum, until nothing joins.
void Engine::recombine(Linear& sum) {
  auto may_join = [](const Term& term) {
    const FloorDiv* div = term.atom.as<FloorDiv>();
    return term.atom.is<FloorMod>() || (div && div->a.is<FloorMod>());
  };
  if (sum.bad) return;
  if (sum.terms.size() < 2) return drop_exact_quotients(sum);
  multiply_out(sum);
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    if (!may_join(sum.terms[i])) continue;
    const Term low = sum.terms[i];
    auto split = as_split(low.atom);
    if (!split || split->modulus == 0) continue;
    // low = scale * (x % modulus // divisor); its partner is scale * (modulus / divisor) * (x // modulus ...).
    int64_t partner_coeff = 0;
    if (!mul_fits(low.coeff, split->modulus / split->divisor, &partner_coeff)) continue;
    for (size_t j = 0; j < sum.terms.size(); ++j) {
      const Term high = sum.terms[j];
      if (j == i || high.coeff != partner_coeff) continue;
      auto other = as_split(high.atom);
      if (!other || other->divisor != split->modulus) continue;
      Linear difference = flat(other->source) - flat(split->source);
      if (difference.bad) continue;
      bool same = difference.is_zero();
      bool multiple = split->divisor == 1 && other->modulus == 0 &&
                      std::all_of(difference.terms.begin(), difference.terms.end(),
                                  [&](const Term& term) { return term.coeff % split->modulus == 0; }) &&
                      difference.constant % split->modulus == 0;
      if (!same && !multiple) continue;
      DataType type = high.atom.dtype();
      Linear joined = flat(other->source);
      if (other->modulus != 0) joined = modulo(std::move(joined), other->modulus, type);
      joined = divide(std::move(joined), split->divisor, type);
      if (joined.bad) continue;
      sum.terms[i].coeff = 0;
      sum.replace_term(j, joined, low.coeff);
      return recombine(sum);
    }
  }
  if (subtract_from_dividend(sum)) return recombine(sum);
  drop_exact_quotients(sum);
}

/// Theorem T6 where the whole dividend stands in the sum, so that terms vanish.
bool Engine::subtract_from_dividend(Linear& sum) {
  for (const Term& term : sum.terms) {
    const FloorDiv* div = term.atom.as<FloorDiv>();
    const FloorMod* mod = term.atom.as<FloorMod>();
    if (!div && !mod) continue;
    auto divisor = const_int(div ? div->b : mod->b);
    if (!divisor || *divisor <= 0 || (div && term.coeff % *divisor != 0)) continue;
    Linear dividend = flat(div ? div->a : mod->a);
    int64_t count = div ? -(term.coeff / *divisor) : -term.coeff;  // of the dividends that go
    if (dividend.bad || count == 0) continue;
    bool present = std::all_of(dividend.terms.begin(), dividend.terms.end(), [&](const Term& part) {
      const Term* found = sum.find(part.fp);
      int64_t wanted = 0;
      return found && mul_fits(part.coeff, count, &wanted) && found->coeff == wanted;
    });
    if (!present) continue;
    DataType type = term.atom.dtype();
    Linear other = div ? modulo(dividend, *divisor, type) : divide(dividend, *divisor, type);
    if (mod) other.scale(*divisor);
    Linear next = sum;
    for (const Term& part : dividend.terms) next.add(part.atom, part.fp, -part.coeff * count);
    next.add_constant(-dividend.constant, count);
    auto at = std::find_if(next.terms.begin(), next.terms.end(), [&](const Term& t) { return t.fp == term.fp; });
    if (at == next.terms.end()) continue;
    next.replace_term(static_cast<size_t>(at - next.terms.begin()), other, count);
    if (next.bad || next.terms.size() >= sum.terms.size()) continue;
    sum = std::move(next);
    return true;
  }
  return false;
}

/// c (x // c) = x - b where x is b modulo c and 0 <= b < c.
void Engine::drop_exact_quotients(Linear& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term term = sum.terms[i];
    const FloorDiv* div = term.atom.as<FloorDiv>();
    auto divisor = div ? const_int(div->b) : std::nullopt;
    if (!divisor || *divisor <= 0 || term.coeff % *divisor != 0) continue;
    ModularSet set = residues(div->a);
    if (set.coeff % *divisor != 0) continue;
    sum.replace_term(i, flat(div->a), term.coeff / *divisor);
    sum.add_constant(-floor_mod(set.base, *divisor), term.coeff / *divisor);
    i = static_cast<size_t>(-1);  // the terms have changed
  }
}

/// Products of sums are multiplied out where that makes terms meet: (x + 1) * n - x * n.
void Engine::multiply_out(Linear& sum) {
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

// ---- other divisions

bool Engine::divide_by_factor(const Expr& atom, Fingerprint factor, Expr* rest) {
  if (fp(atom) == factor) {
    *rest = one(atom.dtype());
    return true;
  }
  const Mul* mul = atom.as<Mul>();
  if (!mul) return false;
  if (divide_by_factor(mul->a, factor, rest)) {
    *rest = *rest * mul->b;
    return true;
  }
  if (divide_by_factor(mul->b, factor, rest)) {
    *rest = mul->a * *rest;
    return true;
  }
  return false;
}

/// The divisor is not constant: (q d + r) // d = q + r // d, and r // d = 0 where 0 <= r < d.
Linear Engine::divide_symbolic(const Linear& dividend, const Expr& divisor, DataType type, bool quotient) {
  if (dividend.bad) return failed();
  Linear divisors = flat(divisor);
  if (divisors.bad) return failed();
  auto plain = [&](const Linear& top) {
    auto expr = to_expr(top, type);
    if (!expr) return failed();
    return atom_of(quotient ? Expr(make<FloorDiv>({*expr, divisor})) : Expr(make<FloorMod>({*expr, divisor})));
  };
  if (divisors.terms.empty()) return plain(dividend);
  // Divide by one factor of the divisor after the other: i * n * m by n * m.
  int64_t scale = gcd(divisors.content(), divisors.constant);
  std::vector<Fingerprint> factors;
  if (divisors.terms.size() == 1 && divisors.constant == 0) {
    std::vector<Expr> open{divisors.terms[0].atom};
    scale = divisors.terms[0].coeff;
    while (!open.empty()) {
      Expr next = open.back();
      open.pop_back();
      if (const Mul* mul = next.as<Mul>()) {
        open.push_back(mul->a);
        open.push_back(mul->b);
      } else {
        factors.push_back(fp(next));
      }
    }
  } else {
    Linear primitive = divisors;
    primitive.divide_exactly(scale);
    factors.push_back(primitive.fingerprint());
  }
  Linear whole, rest = Linear::of_int(dividend.constant);
  for (const Term& term : dividend.terms) {
    Expr remaining = term.atom;
    bool divides = term.coeff % scale == 0;
    for (size_t i = 0; divides && i < factors.size(); ++i)
      divides = divide_by_factor(remaining, factors[i], &remaining);
    if (divides) {
      whole.add(flat(remaining), term.coeff / scale);
    } else {
      rest.add(term.atom, term.fp, term.coeff);
    }
  }
  // The whole dividend may be a multiple of a divisor that is a sum.
  if (dividend.fingerprint() == divisors.fingerprint()) {
    whole = Linear::of_int(1);
    rest = Linear();
  }
  if (rest.is_zero()) return quotient ? whole : Linear::of_int(0);
  Linear below = divisors - rest;
  below.add_constant(-1);
  if (prove_ge0(rest) && prove_ge0(below)) return quotient ? whole : rest;
  Linear atom = plain(rest);
  if (quotient) atom.add(whole);
  return atom;
}

/// Div and Mod round towards zero; where the sign of the dividend is known they are FloorDiv and FloorMod.
Linear Engine::truncating(const Expr& e) {
  bool quotient = e.is<Div>();
  Expr a = simplify(quotient ? e.as<Div>()->a : e.as<Mod>()->a);
  Expr b = simplify(quotient ? e.as<Div>()->b : e.as<Mod>()->b);
  Linear dividend = flat(a);
  ConstIntBound divisors = bound(b), dividends = bound(a);
  auto with = [&](Linear top, bool negate) {
    if (negate) top.scale(-1);
    Linear result;
    if (const IntImm* imm = b.as<IntImm>()) {
      result = quotient ? divide(std::move(top), imm->value, e.dtype()) : modulo(std::move(top), imm->value, e.dtype());
    } else {
      result = divide_symbolic(top, b, e.dtype(), quotient);
    }
    if (negate) result.scale(-1);
    return result;
  };
  if (!dividend.bad && divisors.min_value > 0) {
    if (dividends.min_value >= 0 || prove_ge0(dividend)) return with(dividend, false);
    if (dividends.max_value <= 0) return with(dividend, true);
    if (const IntImm* imm = b.as<IntImm>()) {
      bool exact = gcd(dividend.content(), dividend.constant) % imm->value == 0;
      if (exact) return with(dividend, false);
    }
  }
  if (auto folded = fold_binary(e.kind(), a, b)) return flat(*folded);
  return atom_of(quotient ? Expr(make<Div>({a, b})) : Expr(make<Mod>({a, b})));
}

}  // namespace tilewright::arith
