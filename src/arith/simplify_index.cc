// Sums and products of index expressions; which division theorem a quotient goes to.
//
// divide_constant.cc   by a constant (T1 to T4, T7)
// divide_symbolic.cc   by anything else, and the divisions that round towards zero (S1 to S5)
// recombine.cc         what terms of a sum say together (T5, T6, T8, T9)
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tilewright::arith {

Expr Engine::simplify_index(const Expr& e) {
  if (auto operands = binary_operands(e)) {
    if (auto folded = fold_binary(e.kind(), *operands.a, *operands.b)) return *folded;
  }
  if (!has_values_ && bounds_.empty()) {
    auto runs_beyond = [&](const Expr& variable, int64_t divisor) {
      const VarInfo* known = info(variable);
      if (!known || !known->facts.empty() || !runs_freely()) return false;
      const ConstIntBound& range = known->bound;
      return range.min_value == 0 && range.is_finite() && range.max_value >= divisor;
    };
    if (Expr sum = simplified_sum(e, runs_beyond); sum.defined()) return sum;
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
      if (is_unfoldable(e)) break;
      collect_flat(e.as<Add>()->a, scale, out);
      return collect_flat(e.as<Add>()->b, scale, out);
    case Kind::kSub: {
      if (is_unfoldable(e)) break;
      int64_t negated = 0;
      if (!sub_fits(0, scale, &negated)) out.bad = true;
      collect_flat(e.as<Sub>()->a, scale, out);
      return collect_flat(e.as<Sub>()->b, negated, out);
    }
    case Kind::kMul:
      if (is_unfoldable(e)) break;
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
      // int64(int32(x)) is x where that fits.
      if (is_widening_index_cast(*e.as<Cast>()) && !e.as<Cast>()->value.is<Cast>()) {
        return collect(e.as<Cast>()->value, scale, out);
      }
      return collect_flat(simplify(e), scale, out);
    default:
      return collect_flat(simplify(e), scale, out);
  }
  // A sum that only this expression holds is taken apart in place; what others may ask for again is remembered.
  bool sum = (e.is<Add>() || e.is<Sub>()) && !is_unfoldable(e);
  if (sum && e.get()->use_count() == 1) {
    int64_t second = scale;
    if (e.is<Sub>() && !sub_fits(0, scale, &second)) out.bad = true;
    const auto [a, b] = binary_operands(e);
    collect(*a, scale, out);
    return collect(*b, second, out);
  }
  if (const Linear* known = linears_.find(e)) return out.add(*known, scale);
  out.add(linears_.insert(e, compute_linear(e)), scale);
}

namespace {

/// A number that leaves its type has wrapped: what it is, is left to whoever computes it.
Linear left_if_wraps(Linear sum, DataType type) {
  sum.bad |= sum.is_constant() && !fits(sum.constant, type);
  return sum;
}

}  // namespace

Linear Engine::compute_linear(const Expr& e) {
  Linear out;
  const auto [a, b] = binary_operands(e);
  switch (e.kind()) {
    case Kind::kAdd:
    case Kind::kSub:
      collect(*a, 1, out);
      collect(*b, e.is<Add>() ? 1 : -1, out);
      recombine(out);
      return left_if_wraps(std::move(out), e.dtype());
    case Kind::kMul:
      collect_product(*a, *b, 1, out);
      return left_if_wraps(std::move(out), e.dtype());
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
      return divided(linear(*a), simplify(*b), e.dtype(), e.is<FloorDiv>());
    default:
      return truncating(e);
  }
}

// ---- products

void Engine::collect_product(const Expr& a, const Expr& b, int64_t scale, Linear& out) {
  DataType type = a.dtype();
  // min(a, b) * max(a, b) = a * b
  const Min* low = a.is<Min>() ? a.as<Min>() : b.as<Min>();
  const Max* high = a.is<Min>() ? b.as<Max>() : a.as<Max>();
  if (low && high) {
    Fingerprint a0 = fp(low->a), b0 = fp(low->b), a1 = fp(high->a), b1 = fp(high->b);
    if ((a0 == a1 && b0 == b1) || (a0 == b1 && b0 == a1)) return collect_product(low->a, low->b, scale, out);
  }
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

Linear Engine::atom_of(const Expr& atom) { return Linear::of_atom(atom, fp(atom)); }

}  // namespace tilewright::arith
