// Exact meaning of scalar values of each data type: rounding of floats, wrapping of integers, bytes in memory. Shared
// by constant folding, the interpreter and the code generators' constants.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace tilewright {

/// `value` modulo 2^bits, sign-extended for int and zero-extended for uint (uint64: its bits as int64).
int64_t wrap_int(DataType type, int64_t value);
/// The nearest value of the format, ties to even; overflow gives infinity, or NaN/saturation where the format has none
/// (float8_e4m3fn: NaN; float4_e2m1fn: saturates), as ml_dtypes does.
double round_float(DataType type, double value);
/// Stores one element in its memory layout (little endian, `bytes()` bytes).
void store_element(DataType type, double as_float, int64_t as_int, void* to);
double load_float(DataType type, const void* from);
int64_t load_int(DataType type, const void* from);
/// Smallest and largest value; for uint64 the largest is the bit pattern -1.
int64_t int_min(DataType type);
int64_t int_max(DataType type);
/// Largest finite value.
double float_max(DataType type);
/// A number as an integer of the type: rounded towards 0; the nearest one where it is out of range; NaN gives 0.
int64_t float_to_int(DataType type, double value);
/// An integer of type `from` as the nearest floating-point number; types of fewer than 32 bits round through float32.
double int_to_float(DataType from, DataType to, int64_t value);
/// The result of an operation on numbers of the type; types of fewer than 32 bits compute in float32. `exact` is the
/// result in double precision, which is precise enough for sums, differences, products, quotients and roots of floats.
double round_result(DataType type, double exact);

/// Division that rounds towards minus infinity, and its remainder. The divisor is not 0. Dividing the smallest number
/// by -1 overflows: the quotient wraps to the smallest number, and the remainder is 0.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  int64_t q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace tilewright
