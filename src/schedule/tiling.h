// Uniform sampling of lists of factors with a given product, and the factors of a number.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/random.h"

namespace tilewright::schedule {

struct PrimePower {
  int64_t prime;
  int exponent;
};

/// Returns the prime factors of a number, ascending; none for a number below 2. The time is proportional to the square
/// root of the second largest.
std::vector<PrimePower> factorize(int64_t n);

/// Returns the divisors of a number >= 1, ascending.
std::vector<int64_t> divisors(int64_t n);

/// Samples n factors with product `extent` >= 1, of which the last is at most `max_last` >= 1, uniformly from all such
/// lists. n is 1 only if max_last >= extent.
std::vector<int64_t> sample_tiling(Random& random, int64_t extent, int64_t n, int64_t max_last);

/// Samples n factors with product `extent`, of which those from `position` on have a product that is a multiple of
/// `inner_factor`, uniformly from all such lists. `inner_factor` must divide the extent.
std::vector<int64_t> sample_partitioned_tiling(Random& random, int64_t extent, int64_t n, size_t position,
                                               int64_t inner_factor);

}  // namespace tilewright::schedule
