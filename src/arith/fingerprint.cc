#include "arith/fingerprint.h"

#include <bit>

#include "ir/op.h"
#include "ir/traverse.h"

namespace tilewright::arith {
namespace {

constexpr uint64_t kPrimeA = (uint64_t{1} << 61) - 1;
constexpr uint64_t kPrimeB = (uint64_t{1} << 62) - 57;
using Product = unsigned __int128;

uint64_t reduce_a(Product v) {
  uint64_t r = static_cast<uint64_t>(v & kPrimeA) + static_cast<uint64_t>(v >> 61);
  r = (r & kPrimeA) + (r >> 61);
  return r == kPrimeA ? 0 : r;
}
uint64_t reduce_b(Product v) {
  constexpr uint64_t kLow = (uint64_t{1} << 62) - 1;
  // v = high * 2^62 + low, and 2^62 = 57 modulo the prime.
  Product once = (v & kLow) + (v >> 62) * 57;
  uint64_t twice = static_cast<uint64_t>((once & kLow) + (once >> 62) * 57);
  while (twice >= kPrimeB) twice -= kPrimeB;
  return twice;
}

uint64_t scramble(uint64_t x) {  // the finalizer of splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t tag_of(Kind kind, DataType type = {}) { return static_cast<uint64_t>(kind) << 48 ^ type.packed(); }

}  // namespace

Fingerprint Fingerprint::of_int(int64_t value) {
  if (value >= 0) return {reduce_a(static_cast<uint64_t>(value)), reduce_b(static_cast<uint64_t>(value))};
  return Fingerprint{} - Fingerprint{reduce_a(-static_cast<uint64_t>(value)), reduce_b(-static_cast<uint64_t>(value))};
}
Fingerprint Fingerprint::of_hash(uint64_t hash) {
  return {reduce_a(scramble(hash)), reduce_b(scramble(hash ^ 0x5851f42d4c957f2dULL))};
}
Fingerprint operator+(Fingerprint x, Fingerprint y) {
  uint64_t a = x.a + y.a, b = x.b + y.b;
  return {a >= kPrimeA ? a - kPrimeA : a, b >= kPrimeB ? b - kPrimeB : b};
}
Fingerprint operator-(Fingerprint x, Fingerprint y) {
  return {x.a >= y.a ? x.a - y.a : x.a + kPrimeA - y.a, x.b >= y.b ? x.b - y.b : x.b + kPrimeB - y.b};
}
Fingerprint operator*(Fingerprint x, Fingerprint y) {
  return {reduce_a(static_cast<Product>(x.a) * y.a), reduce_b(static_cast<Product>(x.b) * y.b)};
}
Fingerprint mix(uint64_t tag, Fingerprint x, Fingerprint y, Fingerprint z) {
  auto lane = [&](uint64_t seed) {
    uint64_t h = scramble(tag ^ seed);
    for (uint64_t word : {x.a, x.b, y.a, y.b, z.a, z.b}) h = scramble(h ^ word) + std::rotl(h, 23);
    return h;
  };
  return {reduce_a(lane(1)), reduce_b(lane(2))};
}

Fingerprint Fingerprints::operator()(const Expr& e) {
  if (const IntImm* imm = e.as<IntImm>()) return Fingerprint::of_int(imm->value);
  if (e.is<Var>()) return Fingerprint::of_hash(reinterpret_cast<uintptr_t>(e.get()));
  Entry entry = lookup(e);
  effect_seen_ |= entry.has_effect;
  return entry.has_effect ? mix(++fresh_, entry.value) : entry.value;
}

bool Fingerprints::has_effect(const Expr& e) { return !e.is<IntImm>() && !e.is<Var>() && lookup(e).has_effect; }

Fingerprints::Entry Fingerprints::lookup(const Expr& e) {
  if (const Entry* known = memo_.find(e)) return *known;
  if (memo_.size() > 1u << 16) memo_.clear();
  bool outer = std::exchange(effect_seen_, false);
  Fingerprint value = compute(e);
  Entry entry{value, std::exchange(effect_seen_, outer)};
  memo_.insert(e, entry);
  return entry;
}

void Fingerprints::set_fits_int32(const Ref<Var>& var, bool fits) {
  bool* known = fits_int32_.find(var);
  if (known ? *known == fits : !fits) return;
  memo_.clear();  // it contains casts of the variable
  if (known) {
    *known = fits;
  } else {
    fits_int32_.insert(var, fits);
  }
}

Fingerprint Fingerprints::compute(const Expr& e) {
  bool ring = e.dtype().is_integral() && !e.dtype().is_bool();
  // Where nothing overflows, an operator on indices gives the same number in either width.
  auto tag = [&](Kind kind, DataType type) {
    return tag_of(kind, !wrapping_ && is_index(type) ? DataType::int_(64) : type);
  };
  const auto [left, right] = binary_operands(e);
  auto commutative = [&] {
    Fingerprint x = (*this)(*left), y = (*this)(*right);
    return mix(tag(e.kind(), left->dtype()), x < y ? x : y, x < y ? y : x);
  };
  auto ordered = [&](Kind kind, const Expr& a, const Expr& b) {
    return mix(tag(kind, a.dtype()), (*this)(a), (*this)(b));
  };
  // An order between index expressions is the sign of a difference.
  auto less = [&](const Expr& a, const Expr& b, int64_t slack) {
    if (wrapping_ || !is_index(a.dtype())) return ordered(slack ? Kind::kLT : Kind::kLE, a, b);
    return mix(tag_of(Kind::kLE), (*this)(b) - (*this)(a)-Fingerprint::of_int(slack));
  };
  switch (e.kind()) {
    case Kind::kAdd:
      return ring ? (*this)(*left) + (*this)(*right) : commutative();
    case Kind::kSub:
      return ring ? (*this)(*left) - (*this)(*right) : ordered(Kind::kSub, *left, *right);
    case Kind::kMul:
      return ring ? (*this)(*left) * (*this)(*right) : commutative();
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAnd:
    case Kind::kOr:
      return commutative();
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
      return ordered(e.kind(), *left, *right);
    case Kind::kLT:
      return less(*left, *right, 1);
    case Kind::kLE:
      return less(*left, *right, 0);
    case Kind::kGT:
      return less(*right, *left, 1);
    case Kind::kGE:
      return less(*right, *left, 0);
    case Kind::kEQ:
    case Kind::kNE: {
      Fingerprint x = (*this)(*left), y = (*this)(*right);
      if (!left->dtype().is_integral()) {
        return mix(tag_of(e.kind(), left->dtype()), x < y ? x : y, x < y ? y : x);
      }
      Fingerprint d = x - y, n = y - x;
      return mix(tag_of(e.kind()), d < n ? d : n);
    }
    case Kind::kCast: {
      const Cast& cast = *e.as<Cast>();
      const bool* fits = is_index(cast.dtype) && cast.value.is<Var>() ? fits_int32_.find(cast.value) : nullptr;
      if ((fits && *fits) || is_widening_index_cast(cast)) return (*this)(cast.value);
      return opaque(e);
    }
    default:
      return opaque(e);
  }
}

/// Hashes the kind, type, fields other than expressions, and children in order. Two nodes with an effect are never
/// equal.
Fingerprint Fingerprints::opaque(const Expr& e) {
  Fingerprint h = Fingerprint::of_hash(tag_of(e.kind(), e.dtype()));
  if (const FloatImm* imm = e.as<FloatImm>()) return mix(std::bit_cast<uint64_t>(imm->value), h);
  if (const StringImm* imm = e.as<StringImm>()) return mix(std::hash<std::string>()(imm->value), h);
  if (const Op* op = e.as<Op>()) return mix(std::hash<std::string>()(op->name), h);
  if (const Call* call = e.as<Call>()) {
    Effect effect = call->op.is<Op>() ? intrinsic_row(intrinsic_of(*call)).effect : Effect::kUpdateState;
    if (effect == Effect::kUpdateState) effect_seen_ = true;
  }
  if (e.is<Let>() || e.is<CommReducer>() || e.is<GlobalVar>()) return mix(reinterpret_cast<uintptr_t>(e.get()), h);
  for_each_child(e, [&](const NodeRef& child, Role) {
    if (child.sort() == Sort::kExpr) {
      h = mix(1, h, (*this)(Expr(child)));
    } else {  // a buffer, a region: by identity
      h = mix(reinterpret_cast<uintptr_t>(child.get()), h);
    }
  });
  return h;
}

}  // namespace tilewright::arith
