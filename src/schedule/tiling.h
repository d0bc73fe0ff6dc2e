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

/// The primes of a number, ascending; none of a number below 2. Takes time by the square root of the second largest.
std::vector<PrimePower> factorize(int64_t n);

/// The divisors of a number, at least 1, ascending.
std::vector<int64_t> divisors(int64_t n);

/// n factors with product `extent` (at least 1), the last at most `max_last` (at least 1): each such list is equally
/// likely. n is 1 only if max_last >= extent.
std::vector<int64_t> sample_tiling(Random& random, int64_t extent, int64_t n, int64_t max_last);

/// n factors with product `extent`, those from `position` on with a product that `inner_factor` divides, as it divides
/// the extent: each such list is equally likely.
std::vector<int64_t> sample_partitioned_tiling(Random& random, int64_t extent, int64_t n, size_t position,
                                               int64_t inner_factor);

}  // namespace tilewright::schedule
