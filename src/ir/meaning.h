// Arithmetic of the operations, in one place: the interpreter and constant folding call these functions, and compiled
// code is tested against them.
#pragma once

#include <cmath>
#include <cstdint>

#include "ir/op.h"

namespace tilewright {

// ---- operators of floats: each result is rounded to the type (round_result) ----------------------------------------

/// NaN where one of them is NaN, so that the order of a reduction does not matter; which of two zeros is left open.
inline double min_of(double a, double b) { return std::isnan(a) || a < b ? a : b; }
inline double max_of(double a, double b) { return std::isnan(a) || a > b ? a : b; }
/// Floor of the quotient rounded to float32, or to float64 for operands of that type.
inline double floor_div_of(DataType type, double a, double b) {
  double quotient = a / b;
  return std::floor(type.bits == 64 ? quotient : static_cast<float>(quotient));
}
/// a - floor(a / b) b without rounding on the way; a zero has the sign of the divisor.
inline double floor_mod_of(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

// ---- intrinsics ----------------------------------------------------------------------------------------------------

struct IntArgs {
  int64_t a = 0, b = 0, c = 0, d = 0;
};
/// An intrinsic of numbers of the floating-point type, rounded to it; 0 or 1 for one that gives bool. The row says
/// `of_floats`.
double compute(Intrinsic intrinsic, DataType type, double a, double b = 0, double c = 0);
/// An intrinsic of integers of the type, wrapped to it. The row says `of_integers`.
int64_t compute(Intrinsic intrinsic, DataType type, const IntArgs& args);

}  // namespace tilewright
