// Whether a kernel computed what it should: outputs against expected values, element by element.
//
// An output is filled beforehand with values that cannot be right (NaN; for integers the complement of what is
// expected), so an element that a kernel forgets is found whatever happened to be in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tilewright::search {

/// An element may differ by  relative * |expected| + spread * rms(expected tensor), plus the smallest positive number
/// of its type. The rms is that of results of sums: infinities, NaN and constants that mask elements do not count.
struct Tolerance {
  double relative = 0;
  double spread = 0;

  /// {"relative":1e-06,"spread":1e-06}
  std::string to_json() const;
};

/// The tolerance for two orders of the same sum of `reduction_length` terms, accumulated in one type and stored in
/// another (usually the same). Zero for integers.
///
///   spread = 2 lambda sqrt(n) u_a,   relative = spread + 2 u_s        lambda = 8
///
/// Source: N. J. Higham, T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput.
/// 41(5), 2019, theorem 2.4: the error of n roundings exceeds lambda sqrt(n) u times the magnitude of the terms with a
/// probability of at most 2 exp(-lambda^2 / 2), here 3e-14 for each rounding. Twice, since the expected value is
/// rounded too. The magnitude of the terms is not known here. For signed random inputs the sum of the magnitudes is
/// about sqrt(n) times the result's rms, but the partial sums whose roundings count are of the size of the result
/// itself (same authors, "Sharper Probabilistic Backward Error Analysis", SIAM J. Sci. Comput. 42(5), 2020); for inputs
/// of one sign they are at most |expected|. So rms + |expected| bounds both. A missing term of n stands out as long as
/// it is larger than 16 sqrt(n) u rms, for float32 up to n of a million; for 16-bit accumulators use integer-valued
/// inputs, whose sums are exact, and a tolerance of zero.
Tolerance tolerance_for(DataType stored, DataType accumulated, int64_t reduction_length);

/// Half the distance from 1 to the next larger value: 2^-24 for float32. Zero for integers.
double unit_roundoff(DataType type);

struct CheckReport {
  int64_t total = 0;
  int64_t wrong = 0;
  int64_t first_wrong = -1;  ///< row-major position
  /// Over all elements: the difference divided by what is allowed; at most 1 when nothing is wrong.
  double largest = 0;
  /// "C[511, 3]: expected 1.5, got 2 (a difference of 1e-05 is allowed); 12 of 4096 elements are wrong". Empty when
  /// nothing is wrong.
  std::string message;
  bool canceled = false;

  bool ok() const { return wrong == 0 && !canceled; }
};

/// A tolerance for one expected tensor: an element may differ by relative * |expected| + absolute.
struct Allowance {
  double relative = 0;
  double absolute = 0;
};
Allowance allowance_for(DataType dtype, std::span<const std::byte> expected, const Tolerance& tolerance);

/// Compares `got` with `expected`, both compact and row-major. NaN equals NaN, infinities equal themselves.
CheckReport check_result(const std::string& name, DataType dtype, std::span<const int64_t> shape,
                         std::span<const std::byte> expected, std::span<const std::byte> got,
                         const Allowance& allowance, const std::atomic<bool>* cancel = nullptr);

/// Fills an output with values that differ from the expected ones; but elements that the program from which these come
/// left as this function had filled them (floats of 16 bits and more) are filled so again, and are to be left alone.
void fill_with_wrong_values(DataType dtype, std::span<const std::byte> expected, std::span<std::byte> output);

}  // namespace tilewright::search
