// Arithmetic of the operations, in one place: the interpreter and constant folding call these functions, and compiled
// code is tested against them.
#pragma once

#include <cmath>
#include <cstdint>

#include "ir/op.h"

namespace tilewright {

// ---- operators of floats: each result is rounded to the type (round_result) ----------------------------------------

/// NaN if an operand is NaN, so that the order of a reduction does not matter. For zeros of different signs, either one
/// may be the result.
inline double min_of(double a, double b) { return std::isnan(a) || a < b ? a : b; }
inline double max_of(double a, double b) { return std::isnan(a) || a > b ? a : b; }
/// Floor of the quotient rounded to float32, or to float64 for operands of that type.
inline double floor_div_of(DataType type, double a, double b) {
  double quotient = a / b;
  return std::floor(type.bits == 64 ? quotient : static_cast<float>(quotient));
}
/// a - floor(a / b) * b without intermediate rounding. A zero result has the sign of the divisor.
inline double floor_mod_of(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

// ---- intrinsics ----------------------------------------------------------------------------------------------------

struct IntArgs {
  int64_t a = 0, b = 0, c = 0, d = 0;
};
/// Computes an intrinsic on floats of the type. The result is rounded to the type; a bool is 0 or 1. The intrinsic's
/// row has `of_floats`.
double compute(Intrinsic intrinsic, DataType type, double a, double b = 0, double c = 0);
/// Computes an intrinsic on integers of the type. The result wraps to the type. The intrinsic's row has `of_integers`.
int64_t compute(Intrinsic intrinsic, DataType type, const IntArgs& args);

}  // namespace tilewright
