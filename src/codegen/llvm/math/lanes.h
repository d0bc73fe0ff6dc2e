// Vectors of float64 or float32 (or one) as values that are computed with operators; each operation emits its
// instruction.
//
// These are the types `D` and `S` of the templates in this folder, with the masks and integers that belong to them.
// Constants take the number of lanes of what they are combined with.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <cstdint>

namespace tilewright::codegen::math {

/// 1 for what is not a vector.
inline unsigned lanes_of(const llvm::Value* value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type ? type->getNumElements() : 1;
}

/// Where instructions go, and what the target has.
struct Site {
  llvm::IRBuilder<>& builder;
  bool fused;   ///< has a fused multiplication and addition
  bool tables;  ///< takes elements of a table of 16 float32 from a register
};

/// A truth value for each lane.
struct Mask {
  Site* at;
  llvm::Value* value;
};

/// Integers as wide as the numbers; arithmetic wraps, shifts are logical.
struct Whole {
  Site* at;
  llvm::Value* value;

  [[nodiscard]] Whole whole(uint64_t constant) const;
  /// The element of a table, for one lane.
  [[nodiscard]] Whole lookup(llvm::ArrayRef<uint64_t> table) const;
};

struct Real;
/// Where the target has tables, too: x = 2^exponent mantissa, 3/4 <= mantissa < 3/2, subnormal numbers too. The
/// exponent of 0 is -infinity, that of infinity infinity, with mantissas of magnitude 1; mantissas of negative numbers
/// are no numbers.
struct Parts;
Parts parts_of(const Real& x);
/// 1 / x to 14 bits, for normal x, where the target has it.
Real approximate_reciprocal(const Real& x);
/// Where the target takes them from a register: the elements of a table that the lowest four bits say.
Real lookup(const Whole& places, llvm::ArrayRef<float> table);

struct Real {
  Site* at;
  llvm::Value* value;

  [[nodiscard]] Real constant(double c) const;
  [[nodiscard]] bool fused() const { return at->fused; }
  [[nodiscard]] bool tables() const { return at->tables; }
  Real operator-() const;
};

struct Parts {
  Real exponent, mantissa;
};

Mask operator&(const Mask& a, const Mask& b);
Mask operator|(const Mask& a, const Mask& b);
Mask operator^(const Mask& a, const Mask& b);
Mask operator!(const Mask& a);

Whole operator+(const Whole& a, const Whole& b);
Whole operator-(const Whole& a, const Whole& b);
Whole operator*(const Whole& a, const Whole& b);
Whole operator&(const Whole& a, const Whole& b);
Whole operator|(const Whole& a, const Whole& b);
Whole operator^(const Whole& a, const Whole& b);
Whole operator<<(const Whole& a, const Whole& b);
Whole operator>>(const Whole& a, const Whole& b);
inline Whole operator+(const Whole& a, uint64_t b) { return a + a.whole(b); }
inline Whole operator-(const Whole& a, uint64_t b) { return a - a.whole(b); }
inline Whole operator&(const Whole& a, uint64_t b) { return a & a.whole(b); }
inline Whole operator|(const Whole& a, uint64_t b) { return a | a.whole(b); }
inline Whole operator^(const Whole& a, uint64_t b) { return a ^ a.whole(b); }
inline Whole operator<<(const Whole& a, uint64_t b) { return a << a.whole(b); }
inline Whole operator>>(const Whole& a, uint64_t b) { return a >> a.whole(b); }
/// The upper half of the product, for one lane.
Whole multiply_high(const Whole& a, const Whole& b);
Mask unsigned_less(const Whole& a, const Whole& b);
Mask equal(const Whole& a, const Whole& b);
Whole select(const Mask& mask, const Whole& yes, const Whole& no);

Real operator+(const Real& a, const Real& b);
Real operator-(const Real& a, const Real& b);
Real operator*(const Real& a, const Real& b);
Real operator/(const Real& a, const Real& b);
inline Real operator+(const Real& a, double b) { return a + a.constant(b); }
inline Real operator-(const Real& a, double b) { return a - a.constant(b); }
inline Real operator*(const Real& a, double b) { return a * a.constant(b); }
/// Comparisons are false for NaN.
Mask operator<(const Real& a, const Real& b);
Mask operator>(const Real& a, const Real& b);
Mask equal(const Real& a, const Real& b);
inline Mask operator<(const Real& a, double b) { return a < a.constant(b); }
inline Mask operator>(const Real& a, double b) { return a > a.constant(b); }
/// One of them is NaN.
Mask unordered(const Real& a, const Real& b);
/// The sign bit, of zeros too.
Mask is_negative(const Real& a);
Real select(const Mask& mask, const Real& yes, const Real& no);
Real abs(const Real& a);
Real sqrt(const Real& a);
Real copysign(const Real& magnitude, const Real& sign);
/// a b + c, rounded once where the target can.
Real mad(const Real& a, const Real& b, const Real& c);
Whole bits(const Real& a);
Real real(const Whole& a);
/// The nearest whole number, of two the even one; for |a| < 2^31, of other lanes nothing is known.
Whole rounded(const Real& a);
/// Numbers converted to float64, and rounded to float32.
Real extended(const Real& a);
Real truncated(const Real& a);
/// libm's fmod, for one lane.
Real exact_remainder(const Real& a, const Real& b);

/// Returns `usual`, with the lanes of `mask` replaced by `compute` of the arguments' lane, one lane at a time: for
/// arguments so rare that always computing them would cost more. Executes nothing if the mask is empty.
class LaneReplacement {
 public:
  LaneReplacement(const Mask& mask, llvm::ArrayRef<Real> usual, llvm::ArrayRef<Real> args);
  /// One lane of argument i, inside of the replacement.
  Real argument(size_t i) const { return {at_, lane_args_[i]}; }
  void finish(llvm::ArrayRef<Real> replaced, llvm::MutableArrayRef<Real> results);

 private:
  llvm::Value* slot(llvm::Type* type);

  Site* at_;
  llvm::Value* lanes_ = nullptr;
  llvm::BasicBlock *before_, *done_;
  llvm::BasicBlock* next_ = nullptr;
  llvm::PHINode* lane_ = nullptr;
  llvm::SmallVector<llvm::Value*, 4> usual_, slots_, lane_args_;
};

template <size_t N, class F>
std::array<Real, N> replace_lanes(const Mask& mask, const std::array<Real, N>& usual, const Real& x, F compute) {
  LaneReplacement replacement(mask, usual, {x});
  std::array<Real, N> results = usual;
  replacement.finish(compute(replacement.argument(0)), results);
  return results;
}

template <size_t N, class F>
std::array<Real, N> replace_lanes(const Mask& mask, const std::array<Real, N>& usual, const Real& x, const Real& y,
                                  F compute) {
  LaneReplacement replacement(mask, usual, {x, y});
  std::array<Real, N> results = usual;
  replacement.finish(compute(replacement.argument(0), replacement.argument(1)), results);
  return results;
}

}  // namespace tilewright::codegen::math
