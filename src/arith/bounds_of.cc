// Intervals and residue classes of expressions.
#include <bit>

#include "arith/engine.h"
#include "ir/build.h"
#include "ir/scalable.h"

namespace tilewright::arith {

// ---- intervals

namespace {
/// range * ConstIntBound::single(factor), for a factor that is not 0.
ConstIntBound scaled(const ConstIntBound& range, int64_t factor) {
  auto end = [&](int64_t value) {
    int64_t product = 0;
    bool open = value == ConstIntBound::kPosInf || value == ConstIntBound::kNegInf;
    if (!open && mul_fits(value, factor, &product) && product > ConstIntBound::kNegInf) return product;
    return (value < 0) == (factor < 0) ? ConstIntBound::kPosInf : ConstIntBound::kNegInf;
  };
  if (factor == 1) return range;
  return factor > 0 ? ConstIntBound{end(range.min_value), end(range.max_value)}
                    : ConstIntBound{end(range.max_value), end(range.min_value)};
}
}  // namespace

ConstIntBound Engine::sum_bound(const Linear& linear) {
  // The sum uses 128 bits and tracks infinite ends separately, so that it neither overflows nor loses precision.
  __int128 low = linear.constant, high = linear.constant;
  bool open_low = false, open_high = false;
  for (const Term& term : linear.terms) {
    ConstIntBound range = scaled(bound(term.atom), term.coeff);
    open_low |= !range.has_min();
    open_high |= !range.has_max();
    low += range.min_value;
    high += range.max_value;
  }
  ConstIntBound result;
  if (!open_low && low > ConstIntBound::kNegInf) {
    result.min_value = low >= ConstIntBound::kPosInf ? ConstIntBound::kPosInf - 1 : static_cast<int64_t>(low);
  }
  if (!open_high && high < ConstIntBound::kPosInf) {
    result.max_value = high <= ConstIntBound::kNegInf ? ConstIntBound::kNegInf + 1 : static_cast<int64_t>(high);
  }
  return result;
}

ConstIntBound Engine::bound(const Linear& linear) {
  if (linear.bad) return ConstIntBound::everything();
  if (linear.terms.empty()) return ConstIntBound::single(linear.constant);
  ConstIntBound result = sum_bound(linear);
  if (bounds_.empty() || linear.terms.size() == 1) return result;
  int64_t content = linear.content();
  Linear key = linear;
  key.constant = 0;
  key.divide_exactly(content);
  Fingerprint plus = key.terms_fingerprint(), minus = Fingerprint{} - plus;
  ConstIntBound range = known_bound(minus < plus ? minus : plus);
  if (minus < plus) range = -range;
  range = range * ConstIntBound::single(content) + ConstIntBound::single(linear.constant);
  return intersect(result, range);
}

ConstIntBound Engine::bound(const Expr& e) {
  if (const IntImm* imm = e.as<IntImm>()) {
    if (imm->dtype.is_uint() && imm->value < 0) return {0, ConstIntBound::kPosInf};
    return ConstIntBound::single(imm->value);
  }
  bool data = wraps(e);
  if (const ConstIntBound* known = (data ? value_bounds_of_ : bounds_of_).find(e)) return *known;
  ConstIntBound result = compute_bound(e);
  if (!bounds_.empty() && is_index(e.dtype()) && !data) {
    Fingerprint plus = fp(e), minus = Fingerprint{} - plus;
    ConstIntBound range = known_bound(minus < plus ? minus : plus);
    result = intersect(result, minus < plus ? -range : range);
  }
  (data ? value_bounds_of_ : bounds_of_).insert(e, result);
  if (const FloorDiv* div = e.as<FloorDiv>(); div && !data) {
    // Facts may mention the quotient itself, whose interval is known as far as it goes.
    ConstIntBound tighter = intersect(result, quotient_bound(*div));
    if (!tighter.is_empty()) *bounds_of_.find(e) = result = tighter;
  }
  return result;
}

namespace {

/// Whether the sum is not the expression itself: -1 * x - 4 may be a number of its type where -1 * x is none.
bool is_taken_apart(const Linear& sum, const Expr& e) {
  return sum.terms.size() > 1 || (sum.terms.size() == 1 && !(sum.terms[0].atom == e));
}

int64_t constant_lanes(const Expr& lanes) {
  const IntImm* n = lanes.as<IntImm>();
  return n ? n->value : ConstIntBound::kPosInf;
}

}  // namespace

ConstIntBound Engine::compute_bound(const Expr& e) {
  DataType type = e.dtype();
  ConstIntBound whole = ConstIntBound::of_type(type.element());
  if (!type.is_integral()) return ConstIntBound::everything();
  // A result beyond the range of its type has wrapped. Types without wrap-around never leave their range.
  auto result_of = [&](ConstIntBound range) {
    bool may_wrap = !type.is_int() || type.bits < 32 || wraps(e);
    // An open end does not limit the sum or product.
    bool grows = e.is<Add>() || e.is<Sub>() || e.is<Mul>() || e.is<Ramp>();
    if (may_wrap && grows && !range.is_finite()) return whole;
    if (range.within(whole)) return range;
    if (may_wrap || range.is_single()) return whole;
    ConstIntBound inside = intersect(range, whole);
    return inside.is_empty() ? whole : inside;
  };
  const auto [a, b] = binary_operands(e);
  switch (e.kind()) {
    case Kind::kVar: {
      const VarInfo* known = info(e);
      if (known && known->value.defined()) return bound(known->value);
      ConstIntBound range = known ? known->bound : whole;
      if (e.as<Var>()->is_size && type.is_int()) range.min_value = std::max<int64_t>(range.min_value, 0);
      return range;
    }
    case Kind::kAdd:
    case Kind::kSub:
      if (is_index(type) && !wraps(e)) {
        Linear sum = flat(e);
        if (is_taken_apart(sum, e)) return result_of(bound(sum));
      }
      return result_of(e.is<Add>() ? bound(*a) + bound(*b) : bound(*a) - bound(*b));
    case Kind::kMul: {
      ConstIntBound left = bound(*a), product = left * bound(*b);
      if (is_index(type) && !wraps(e) && product.min_value < 0 && fp(*a) == fp(*b)) {
        product.min_value = left.contains(0) ? 0 : (max(left, -left) * max(left, -left)).min_value;  // a square
      }
      return result_of(product);
    }
    case Kind::kFloorDiv:
      return result_of(floor_div(bound(*a), bound(*b)));
    case Kind::kFloorMod:
      return result_of(floor_mod(bound(*a), bound(*b)));
    case Kind::kDiv:
      return result_of(trunc_div(bound(*a), bound(*b)));
    case Kind::kMod:
      return result_of(trunc_mod(bound(*a), bound(*b)));
    case Kind::kMin:
      return min(bound(*a), bound(*b));
    case Kind::kMax:
      return max(bound(*a), bound(*b));
    case Kind::kSelect:
      return unite(bound(e.as<Select>()->true_value), bound(e.as<Select>()->false_value));
    case Kind::kLet:
      return bound(e.as<Let>()->body);
    case Kind::kBroadcast:
      return bound(e.as<Broadcast>()->value);
    case Kind::kRamp: {
      int64_t lanes = constant_lanes(e.as<Ramp>()->lanes);
      ConstIntBound steps{0, lanes == ConstIntBound::kPosInf ? lanes : lanes - 1};
      return result_of(bound(e.as<Ramp>()->base) + bound(e.as<Ramp>()->stride) * steps);
    }
    case Kind::kCast: {
      const Expr& value = e.as<Cast>()->value;
      if (!value.dtype().is_integral()) return whole;
      ConstIntBound range = bound(value);
      // Numbers of uint64 from 2^63 on, which an end cannot say, become negative ones.
      const bool may_be_huge = value.dtype().is_uint() && value.dtype().bits == 64 && !range.has_max();
      return range.within(whole) && !(may_be_huge && type.is_int()) ? range : whole;
    }
    case Kind::kCall:
      return call_bound(*e.as<Call>(), e);
    case Kind::kBufferLoad: {
      const Elements* declared = elements(e);
      if (!declared) return whole;
      ConstIntBound inside{bound(declared->min).min_value, bound(declared->max).max_value};
      inside = intersect(inside, whole);
      return inside.is_empty() ? whole : inside;
    }
    default:
      return whole;
  }
}

ConstIntBound Engine::call_bound(const Call& call, const Expr& e) {
  DataType type = e.dtype();
  ConstIntBound whole = ConstIntBound::of_type(type.element());

  auto arg = [&](size_t i) { return call.arg(i); };
  switch (intrinsic_of(call)) {
    case Intrinsic::k_likely:
      return bound(arg(0));
    case Intrinsic::k_if_then_else:
      return unite(bound(arg(1)), bound(arg(2)));
    case Intrinsic::k_shift_right:
      // For a fixed value, the quotient is monotone in the number of bits, so the bounds are at its ends.
      if (ConstIntBound bits = bound(arg(1)); bits.within({0, std::min(61, type.bits - 1)})) {
        ConstIntBound value = bound(arg(0));
        return unite(floor_div(value, ConstIntBound::single(int64_t{1} << bits.min_value)),
                     floor_div(value, ConstIntBound::single(int64_t{1} << bits.max_value)));
      }
      return whole;
    case Intrinsic::k_vscale:
      return {1, kMaxVscale};
    case Intrinsic::k_clz: {
      ConstIntBound value = bound(arg(0));
      const int bits = arg(0).dtype().bits;
      // An open end of uint64 holds numbers whose first bit is set.
      const bool may_be_huge = arg(0).dtype().is_uint() && !value.has_max();
      if (value.min_value < 0 || may_be_huge) return {0, bits};
      auto zeros = [&](int64_t of) { return std::countl_zero(static_cast<uint64_t>(of)) - (64 - bits); };
      return {zeros(value.max_value), zeros(value.min_value)};
    }
    case Intrinsic::k_popcount:
      return {0, arg(0).dtype().bits};
    case Intrinsic::k_shift_left:
      if (ConstIntBound bits = bound(arg(1)); bits.within({0, 61}) && is_index(type) && !wraps(e)) {
        ConstIntBound value = bound(arg(0)) * ConstIntBound{int64_t{1} << bits.min_value, int64_t{1} << bits.max_value};
        return value.within(whole) ? value : whole;
      }
      return whole;
    case Intrinsic::k_bitwise_and: {
      ConstIntBound result = whole;
      for (size_t i = 0; i < 2; ++i) {  // the bits of a value that is not negative
        ConstIntBound side = bound(arg(i));
        if (side.min_value >= 0) result = intersect(result, {0, side.max_value});
      }
      return result;
    }
    default:
      return whole;
  }
}

// ---- residue classes

namespace {
/// The stronger of two congruences that both hold.
ModularSet stronger(const ModularSet& a, const ModularSet& b) {
  if (a.coeff == 0) return a;
  return b.coeff == 0 || b.coeff > a.coeff ? b : a;
}
}  // namespace

ModularSet Engine::known_residues(Fingerprint value) const {
  ModularSet result;
  for (const KnownResidues& known : residues_) {
    if (known.value == value) result = stronger(result, known.set);
  }
  return result;
}

ModularSet Engine::residues(const Linear& linear) {
  if (linear.bad) return ModularSet::everything();
  ModularSet sum = ModularSet::single(linear.constant);
  for (const Term& term : linear.terms) {
    sum = sum + residues(term.atom) * ModularSet::single(term.coeff);
    if (sum.is_everything()) break;
  }
  if (!residues_.empty() && linear.terms.size() > 1) {
    sum = stronger(sum, known_residues(linear.terms_fingerprint()) + ModularSet::single(linear.constant));
  }
  return sum;
}

ModularSet Engine::residues(const Expr& e) {
  if (const IntImm* imm = e.as<IntImm>()) {
    // 2^64 + value, of which only the class modulo powers of two is that of the value.
    if (imm->dtype.is_uint() && imm->value < 0) return ModularSet::make(int64_t{1} << 62, imm->value);
    return ModularSet::single(imm->value);
  }
  if (!e.dtype().is_integral()) return ModularSet::everything();
  if (const ModularSet* known = residues_of_.find(e)) return *known;
  ModularSet result = compute_residues(e);
  if (!residues_.empty() && is_index(e.dtype())) result = stronger(result, known_residues(fp(e)));
  residues_of_.insert(e, result);
  return result;
}

ModularSet Engine::compute_residues(const Expr& e) {
  DataType type = e.dtype();
  // A class modulo a power of two survives wrapping; others only where nothing wraps.
  auto result_of = [&](ModularSet set) {
    if (is_index(type) || type.element().bits == 0) return set;
    if (type.is_int() && type.bits >= 32) return set;
    int64_t kept = set.coeff == 0 ? int64_t{1} << std::min<int>(type.bits, 62) : set.coeff & -set.coeff;
    kept = std::min(kept, int64_t{1} << std::min<int>(type.bits, 62));
    return ModularSet::make(kept, set.base);
  };
  const auto [a, b] = binary_operands(e);
  switch (e.kind()) {
    case Kind::kVar: {
      const VarInfo* known = info(e);
      return known && known->value.defined() ? residues(known->value) : ModularSet::everything();
    }
    case Kind::kAdd:
      return result_of(residues(*a) + residues(*b));
    case Kind::kSub:
      return result_of(residues(*a) + residues(*b) * ModularSet::single(-1));
    case Kind::kMul:
      return result_of(residues(*a) * residues(*b));
    case Kind::kMin:
      return unite(residues(*a), residues(*b));
    case Kind::kMax:
      return unite(residues(*a), residues(*b));
    case Kind::kSelect:
      return unite(residues(e.as<Select>()->true_value), residues(e.as<Select>()->false_value));
    case Kind::kCast: {
      const Cast& cast = *e.as<Cast>();
      return is_widening_index_cast(cast) ? residues(cast.value) : ModularSet::everything();
    }
    case Kind::kBroadcast:
      return residues(e.as<Broadcast>()->value);
    case Kind::kRamp: {
      ModularSet step = residues(e.as<Ramp>()->stride);
      return result_of(residues(e.as<Ramp>()->base) + ModularSet::make(gcd(step.coeff, step.base), 0));
    }
    case Kind::kFloorDiv: {
      // (coeff k + base) // d is exact in k when d divides coeff.
      auto divisor = const_int(*b);
      if (!divisor || *divisor <= 0) return ModularSet::everything();
      ModularSet set = residues(*a);
      if (set.coeff % *divisor != 0) return ModularSet::everything();
      return ModularSet::make(set.coeff / *divisor, floor_div(set.base, *divisor));
    }
    case Kind::kFloorMod: {
      auto divisor = const_int(*b);
      if (!divisor || *divisor <= 0) return ModularSet::everything();
      ModularSet set = residues(*a);
      if (set.coeff == 0) return ModularSet::single(floor_mod(set.base, *divisor));
      return ModularSet::make(gcd(set.coeff, *divisor), set.base);
    }
    case Kind::kCall:
      return call_residues(*e.as<Call>(), e);
    default:
      return ModularSet::everything();
  }
}

/// Operations on bits that are a product, a quotient or a remainder by a power of two.
ModularSet Engine::call_residues(const Call& call, const Expr& e) {
  const Intrinsic intrinsic = intrinsic_of(call);
  auto power = [&](size_t i) -> int64_t {  // 0: none
    auto bits = const_int(call.arg(i));
    return bits && *bits >= 0 && *bits < 62 && *bits < e.dtype().bits ? int64_t{1} << *bits : 0;
  };
  if (intrinsic == Intrinsic::k_shift_left && is_index(e.dtype()) && !wraps(e) && power(1)) {
    return residues(call.arg(0)) * ModularSet::single(power(1));
  }
  if (intrinsic == Intrinsic::k_shift_right && power(1)) {
    ModularSet set = residues(call.arg(0));
    if (set.coeff % power(1) != 0) return ModularSet::everything();
    return ModularSet::make(set.coeff / power(1), floor_div(set.base, power(1)));
  }
  if (intrinsic == Intrinsic::k_bitwise_and) {
    for (size_t i = 0; i < 2; ++i) {
      auto mask = const_int(call.arg(i));
      if (!mask || *mask < 0 || (*mask & (*mask + 1)) != 0) continue;
      ModularSet set = residues(call.arg(1 - i));
      if (set.coeff == 0) return ModularSet::single(set.base & *mask);
      return ModularSet::make(gcd(set.coeff, *mask + 1), set.base);
    }
  }
  return ModularSet::everything();
}

}  // namespace tilewright::arith
