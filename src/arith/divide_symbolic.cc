// Division by what is no constant, and the divisions that round towards zero. The theorems, for integers, b and f other
// than 0, c > 0:
//
//   S1  (q b + r) // b = q + r // b              (q b + r) % b = r % b;  r // b = k where k b <= r < k b + b
//   S2  (x % (q b) + z) % b = (x + z) % b
//   S3  (f x) // (f b) = x // b                  (f x) % (f b) = f (x % b)
//   S4  the quotient towards zero is that of floor where it is exact or both operands have one sign
//       x / -b = -(x / b)                        x rem -b = x rem b
//   S5  (x / c) / b = x / (c b)                  (x rem (q b)) rem b = x rem b
//
// What S1 leaves and the new sum of S2 must stay inside the type; a negated operand must not be the smallest number of
// its type.
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "support/ranges.h"

namespace tilewright::arith {

/// Divides by any divisor that simplify() returned.
Linear Engine::divided(Linear dividend, const Expr& divisor, DataType type, bool quotient) {
  const IntImm* imm = divisor.as<IntImm>();
  if (!imm || imm->value == 0 || imm->value == std::numeric_limits<int64_t>::min()) {
    return divide_symbolic(dividend, divisor, type, quotient);
  }
  if (imm->value < 0) {  // a // -c = -a // c, a % -c = -(-a % c)
    if (!may_negate(dividend, type)) return divide_symbolic(dividend, divisor, type, quotient);
    dividend.scale(-1);
  }
  int64_t magnitude = imm->value < 0 ? -imm->value : imm->value;
  if (quotient) return divide(std::move(dividend), magnitude, type);
  Linear rest = modulo(std::move(dividend), magnitude, type);
  if (imm->value < 0) rest.scale(-1);
  return rest;
}

/// Whether it is never the smallest number of its type.
bool Engine::may_negate(const Linear& sum, DataType type) {
  ConstIntBound range = bound(sum);
  if (range.has_min() && range.min_value > int_min(type)) return true;
  // -x of an x that has a value
  return !sum.terms.empty() && sum.constant <= 0 && all_of(sum.terms, [](const Term& term) { return term.coeff < 0; });
}

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

/// A divisor as constant * factor * factor * ...; one that is a sum is a single factor.
struct Engine::Factored {
  int64_t scale = 1;
  std::vector<Expr> factors;
};

std::optional<Engine::Factored> Engine::factored(const Linear& sum, DataType type) {
  Factored result;
  if (sum.bad || sum.terms.empty()) return std::nullopt;
  result.scale = gcd(sum.content(), sum.constant);
  if (sum.terms.size() == 1 && sum.constant == 0) {
    result.scale = sum.terms[0].coeff;
    std::vector<Expr> open{sum.terms[0].atom};
    while (!open.empty()) {
      Expr next = open.back();
      open.pop_back();
      if (const Mul* mul = next.as<Mul>()) {
        open.push_back(mul->a);
        open.push_back(mul->b);
      } else {
        result.factors.push_back(next);
      }
    }
    return result;
  }
  Linear primitive = sum;
  primitive.divide_exactly(result.scale);
  auto factor = to_expr(primitive, type);
  if (!factor) return std::nullopt;
  result.factors.push_back(*factor);
  return result;
}

/// The part of the dividend that is a multiple of the divisor, divided by it; the rest stays.
Linear Engine::take_multiples(Linear& dividend, const Linear& divisor, const Factored& parts) {
  Linear whole;
  if (dividend.fingerprint() == divisor.fingerprint()) {  // for a divisor that is a sum
    dividend = Linear();
    return Linear::of_int(1);
  }
  Linear rest = Linear::of_int(dividend.constant);
  for (const Term& term : dividend.terms) {
    Expr remaining = term.atom;
    bool divides = term.coeff % parts.scale == 0;
    for (size_t i = 0; divides && i < parts.factors.size(); ++i) {
      divides = divide_by_factor(remaining, fp(parts.factors[i]), &remaining);
    }
    if (divides) {
      whole.add(flat(remaining), term.coeff / parts.scale);
    } else {
      rest.add(term.atom, term.fp, term.coeff);
    }
  }
  dividend = std::move(rest);
  const bool is_sum = divisor.terms.size() > 1 || divisor.constant != 0;
  if (parts.factors.size() == 1 && is_sum) take_sums(dividend, divisor, whole);
  return whole;
}

/// A divisor that is a sum, taken apart in the dividend: (x n + x) // (n + 1), (3 n + 6) // (n + 2).
void Engine::take_sums(Linear& dividend, const Linear& divisor, Linear& whole) {
  const Term& lead = divisor.terms[0];
  for (int round = 0; round < 4; ++round) {
    bool taken = false;
    for (const Term& term : dividend.terms) {
      Expr factor = term.atom;
      if (term.coeff % lead.coeff != 0 || !divide_by_factor(term.atom, lead.fp, &factor)) continue;
      Linear next = dividend;
      Linear multiple = factor.is<IntImm>() ? divisor : multiplied(divisor, factor);
      next.add(multiple, -(term.coeff / lead.coeff));
      if (next.bad || next.terms.size() >= dividend.terms.size()) continue;
      // 64 n // (n + 1) is no simpler as 64 + -64 // (n + 1).
      const int64_t before = dividend.constant, after = next.constant;
      if (divisor.terms.size() == 1 && (after < 0 ? -after : after) > (before < 0 ? -before : before)) continue;
      whole.add(factor.is<IntImm>() ? Linear::of_int(1) : flat(factor), term.coeff / lead.coeff);
      dividend = std::move(next);
      taken = true;
      break;
    }
    if (!taken) return;
  }
}

/// S3: factors that dividend and divisor share go. Returns their product, which is 1 when there are none.
Linear Engine::cancel_factors(Linear& dividend, Factored& divisor) {
  Linear common = Linear::of_int(1);
  int64_t g = gcd(gcd(dividend.content(), dividend.constant), divisor.scale);
  if (g > 1) {
    dividend.divide_exactly(g);
    divisor.scale /= g;
    common.scale(g);
  }
  for (size_t i = 0; i < divisor.factors.size();) {
    const Expr factor = divisor.factors[i];
    Linear by = flat(factor), rest = dividend;
    auto parts = factored(by, factor.dtype());
    Linear next = parts ? take_multiples(rest, by, *parts) : Linear::failed();
    auto before = to_expr(common, factor.dtype());
    if (next.bad || !rest.is_zero() || !before) {
      ++i;
      continue;
    }
    Linear product;
    collect_product(*before, factor, 1, product);
    common = std::move(product);
    dividend = std::move(next);
    erase_at(divisor.factors, i);
  }
  return common;
}

/// S2: remainders by multiples of the divisor, modulo which they are their dividends.
Linear Engine::without_remainders(const Linear& dividend, const Linear& divisor, const Factored& parts) {
  Linear result = Linear::of_int(dividend.constant);
  for (const Term& term : dividend.terms) {
    const FloorMod* mod = term.atom.as<FloorMod>();
    Linear by = mod ? flat(mod->b) : Linear();
    if (mod && !by.bad) {
      by.scale(term.coeff);  // c (x % b) = (c x) % (c b)
      take_multiples(by, divisor, parts);
      Linear source = flat(mod->a);
      if (by.is_zero() && !source.bad) {
        result.add(source, term.coeff);
        continue;
      }
    }
    result.add(term.atom, term.fp, term.coeff);
  }
  return result;
}

Linear Engine::divide_symbolic(const Linear& dividend, const Expr& divisor, DataType type, bool quotient) {
  if (dividend.bad) return Linear::failed();
  Linear divisors = flat(divisor);
  if (divisors.bad) return Linear::failed();
  auto plain = [&](const Linear& top, const Expr& by) {
    auto expr = to_expr(top, type);
    if (!expr) return Linear::failed();
    return atom_of(make_binary(quotient ? Kind::kFloorDiv : Kind::kFloorMod, *expr, by));
  };
  std::optional<Factored> parts = factored(divisors, type);
  if (!parts) return plain(dividend, divisor);
  Linear rest = dividend;
  Linear whole = take_multiples(rest, divisors, *parts);
  if (!rest.is_constant() && !stays_inside(rest, type, dividend)) {
    rest = dividend;
    whole = Linear();
  }
  if (!quotient) {
    Linear other = without_remainders(rest, divisors, *parts);
    if (!other.bad && !(other.fingerprint() == rest.fingerprint()) && stays_inside(other, type, dividend)) {
      take_multiples(other, divisors, *parts);
      rest = std::move(other);
    }
  }
  if (rest.is_zero()) return quotient ? whole : Linear::of_int(0);
  // S1: r // b is 0 or -1
  for (int64_t k : {0, -1}) {
    Linear above = rest;
    above.add(divisors, -k);
    Linear below = divisors - above;
    below.add_constant(-1);
    if (!prove_ge0(above) || !prove_ge0(below)) continue;
    whole.add_constant(k);
    return quotient ? whole : above;
  }
  Linear common = cancel_factors(rest, *parts);
  if (common.bad) return Linear::failed();
  if (common.is_constant() && common.constant == 1) {
    Linear atom = plain(rest, divisor);
    if (quotient) atom.add(whole);
    return atom;
  }
  Linear left = Linear::of_int(parts->scale);
  for (const Expr& factor : parts->factors) {
    auto before = to_expr(left, type);
    if (!before) return Linear::failed();
    Linear product;
    collect_product(*before, factor, 1, product);
    left = std::move(product);
  }
  auto by = to_expr(left, type);
  if (!by) return Linear::failed();
  Linear result = divided(std::move(rest), *by, type, quotient);
  if (quotient) {
    result.add(whole);
    return result;
  }
  auto x = to_expr(common, type), y = to_expr(result, type);
  if (!x || !y) return Linear::failed();
  Linear product;
  collect_product(*y, *x, 1, product);
  return product;
}

// ---- rounding towards zero

Linear Engine::truncating(const Expr& e) {
  bool quotient = e.is<Div>();
  const BinaryOperands operands = binary_operands(e);
  Expr a = simplify(*operands.a), b = simplify(*operands.b);
  if (auto folded = fold_binary(e.kind(), a, b)) return flat(*folded);
  Linear result = truncated(flat(a), b, e.dtype(), quotient);
  if (!result.bad) return result;
  return atom_of(make_binary(e.kind(), a, b));
}

Linear Engine::truncated(Linear dividend, const Expr& divisor, DataType type, bool quotient) {
  Linear divisors = flat(divisor);
  if (dividend.bad || divisors.bad || divisors.is_zero()) return Linear::failed();
  auto negated = [](Linear sum) {
    sum.scale(-1);
    return sum;
  };
  // S4: a divisor below 0
  if (bound(divisors).max_value < 0 && may_negate(divisors, type)) {
    auto positive = to_expr(negated(divisors), type);
    if (!positive) return Linear::failed();
    Linear result = truncated(std::move(dividend), *positive, type, quotient);
    return quotient ? negated(std::move(result)) : result;
  }
  bool positive = bound(divisors).min_value > 0 || prove_ge0(divisors - Linear::of_int(1));
  if (positive) {
    ConstIntBound range = bound(dividend);
    if (range.min_value >= 0 || prove_ge0(dividend)) return divided(std::move(dividend), divisor, type, quotient);
    if (range.max_value <= 0) {
      if (may_negate(dividend, type)) {
        return negated(divided(negated(std::move(dividend)), divisor, type, quotient));
      }
      Linear shift = divisors - Linear::of_int(1);  // x + b - 1 < b fits
      dividend.add(shift);
      Linear result = divided(std::move(dividend), divisor, type, quotient);
      return quotient ? result : result - shift;
    }
  }
  // S4: exact
  Linear rest = dividend;
  if (auto by = const_int(divisor)) {
    if (positive && gcd(rest.content(), rest.constant) % *by == 0) return divided(rest, divisor, type, quotient);
  } else if (auto parts = factored(divisors, type)) {
    Linear whole = take_multiples(rest, divisors, *parts);
    if (rest.is_zero()) return quotient ? whole : rest;
  }
  return truncated_atom(std::move(dividend), divisor, type, quotient);
}

/// S3 and S5 for constants, where the sign of the dividend is not known.
Linear Engine::truncated_atom(Linear dividend, const Expr& divisor, DataType type, bool quotient) {
  auto by = const_int(divisor);
  int64_t common = 1, d = by.value_or(0);
  if (d > 0) {
    common = gcd(gcd(dividend.content(), dividend.constant), d);
    dividend.divide_exactly(common);
    d /= common;
    const Term* single = dividend.single_atom();
    const Div* div = single ? single->atom.as<Div>() : nullptr;
    const Mod* mod = single ? single->atom.as<Mod>() : nullptr;
    auto inner = div ? const_int(div->b) : mod ? const_int(mod->b) : std::nullopt;
    int64_t product = 0;
    if (quotient && div && inner && *inner > 0 && mul_fits(*inner, d, &product) && fits(product, type)) {
      return truncated(flat(div->a), int_imm(type, product), type, true);
    }
    if (!quotient && mod && inner && *inner % d == 0) {
      Linear result = truncated(flat(mod->a), int_imm(type, d), type, false);
      result.scale(common);
      return result;
    }
  }
  auto top = to_expr(dividend, type);
  if (!top) return Linear::failed();
  Expr bottom = d > 0 ? Expr(int_imm(type, d)) : divisor;
  Linear result = atom_of(make_binary(quotient ? Kind::kDiv : Kind::kMod, *top, bottom));
  if (!quotient) result.scale(common);
  return result;
}

}  // namespace tilewright::arith
