// Fingerprints: equality of integer expressions up to the laws of arithmetic, in constant time.
//
// A fingerprint is a pair of residues modulo two primes (2^61 - 1 and 2^62 - 57). Variables and other opaque parts get
// pseudo-random residues, constants themselves; sums, differences and products are computed with the residues. So two
// expressions that are equal as polynomials over the integers have equal fingerprints, whatever their shape:
// (i + 1) * n and n + n * i. Different polynomials of degree d collide with a probability below (d / 2^61)^2.
// Operators that are not polynomial (floordiv, min, ...) hash the fingerprints of their operands.
//
// Wrapping integers may use them too: equal over the integers implies equal modulo 2^n. Floats do not: their operators
// are hashed like opaque ones.
#pragma once

#include <cstdint>
#include "arith/node_table.h"
#include "ir/expr.h"

namespace tilewright::arith {

struct Fingerprint {
  uint64_t a = 0, b = 0;

  static Fingerprint of_int(int64_t value);
  /// The fingerprint of something opaque, given any well-spread hash.
  static Fingerprint of_hash(uint64_t hash);
  bool is_zero() const { return a == 0 && b == 0; }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  friend bool operator<(const Fingerprint& x, const Fingerprint& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; }
};
Fingerprint operator+(Fingerprint x, Fingerprint y);
Fingerprint operator-(Fingerprint x, Fingerprint y);
Fingerprint operator*(Fingerprint x, Fingerprint y);
/// The fingerprint of an operator that is not polynomial.
Fingerprint mix(uint64_t tag, Fingerprint x, Fingerprint y = {}, Fingerprint z = {});

struct FingerprintHash {
  size_t operator()(const Fingerprint& f) const { return f.a ^ f.b << 1; }
};

/// Remembers the fingerprints of nodes it has seen, which it keeps alive.
class Fingerprints {
 public:
  /// `wrapping`: sums of int32 and int64 may wrap, so an order is not the sign of a difference.
  explicit Fingerprints(bool wrapping = false) : wrapping_(wrapping) {}
  /// A call that changes state never equals anything, itself included: each query gives another fingerprint.
  Fingerprint operator()(const Expr& e);
  /// Whether evaluating the expression changes state.
  bool has_effect(const Expr& e);
  /// Whether all values of a variable fit int32: then a cast of it to a smaller index type is the variable itself.
  void set_fits_int32(const Ref<Var>& var, bool fits);
  void clear() { memo_.clear(); }
  size_t size() const { return memo_.size(); }

 private:
  struct Entry {
    Fingerprint value;
    bool has_effect = false;
  };
  Entry lookup(const Expr& e);
  Fingerprint compute(const Expr& e);
  Fingerprint opaque(const Expr& e);
  NodeTable<Entry> memo_;
  NodeTable<bool> fits_int32_;
  bool wrapping_;
  bool effect_seen_ = false;  ///< below the node now computed
  uint64_t fresh_ = 0;
};

/// Signed with at least 32 bits: arithmetic of this type does not overflow (design: index arithmetic).
inline bool is_index(DataType type) { return type.is_int() && type.bits >= 32 && type.is_scalar(); }
/// A cast between index types that keeps every value.
inline bool is_widening_index_cast(const Cast& cast) {
  return is_index(cast.dtype) && is_index(cast.value.dtype()) && cast.dtype.bits >= cast.value.dtype().bits;
}

}  // namespace tilewright::arith
