#include "schedule/tiling.h"

#include <algorithm>

#include "support/ranges.h"

namespace tilewright::schedule {

/// Trial division; past 2^32 a remaining cofactor is found by the time its square root is reached (under 0.1 s up to
/// 2^53), and loop extents have small factors.
std::vector<PrimePower> factorize(int64_t n) {
  std::vector<PrimePower> result;
  for (int64_t p = 2; p <= n / p; p += p == 2 ? 1 : 2) {
    int exponent = 0;
    for (; n % p == 0; n /= p) ++exponent;
    if (exponent) result.push_back({p, exponent});
  }
  if (n > 1) result.push_back({n, 1});
  return result;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> all = {1};
  for (const auto& [prime, exponent] : factorize(n)) {
    const size_t known = all.size();
    for (int64_t power = prime, e = 1; e <= exponent; power *= prime, ++e) {
      for (size_t i = 0; i < known; ++i) all.push_back(all[i] * power);
      if (e == exponent) break;  // the next power may not fit
    }
  }
  std::ranges::sort(all);
  return all;
}

namespace {

/// Ways to write `total` as an ordered sum of `parts` numbers from 0 up: C(total + parts - 1, parts - 1).
double compositions(int total, int64_t parts) {
  double ways = 1;
  for (int i = 1; i <= total; ++i) ways = ways * static_cast<double>(parts - 1 + i) / i;
  return ways;
}

/// Lists of n factors of the number with these exponents: one composition per prime.
double count_lists(const std::vector<int>& exponents, int64_t n) {
  double ways = 1;
  for (int e : exponents) ways *= compositions(e, n);
  return ways;
}

struct Last {
  int64_t value;
  std::vector<int> exponents;  ///< exponents of the last factor
  double lists;                ///< number of lists of the factors before it
};

/// Each possible last factor with the number of lists that end in it.
std::vector<Last> possible_last(const std::vector<PrimePower>& primes, int64_t n, int64_t max_last) {
  std::vector<Last> all = {{1, std::vector<int>(primes.size(), 0), 0}};
  for (size_t p : indices_of(primes)) {
    size_t known = all.size();
    for (size_t i = 0; i < known; ++i) {
      Last next = all[i];
      for (int e = 1; e <= primes[p].exponent && next.value <= max_last / primes[p].prime; ++e) {
        next.value *= primes[p].prime;
        next.exponents[p] = e;
        all.push_back(next);
      }
    }
  }
  for (Last& last : all) {
    std::vector<int> rest;
    for (size_t p : indices_of(primes)) rest.push_back(primes[p].exponent - last.exponents[p]);
    bool complete = all_of(rest, [](int e) { return e == 0; });
    last.lists = n > 1 ? count_lists(rest, n - 1) : complete ? 1 : 0;
  }
  std::ranges::sort(all, [](const Last& a, const Last& b) { return a.value < b.value; });
  return all;
}

/// A uniform composition of `total` into `parts`, part by part: the first is f with probability proportional to the
/// number of ways to divide the rest.
void sample_composition(Random& random, int total, int64_t parts, std::vector<int>& out) {
  out.clear();
  for (int64_t left = parts; left > 1; --left) {
    std::vector<double> weights;
    for (int first = 0; first <= total; ++first) weights.push_back(compositions(total - first, left - 1));
    int first = static_cast<int>(random.categorical(weights));
    out.push_back(first);
    total -= first;
  }
  out.push_back(total);
}

}  // namespace

std::vector<int64_t> sample_tiling(Random& random, int64_t extent, int64_t n, int64_t max_last) {
  std::vector<PrimePower> primes = factorize(extent);
  std::vector<Last> candidates = possible_last(primes, n, max_last);
  std::vector<double> weights;
  for (const Last& last : candidates) weights.push_back(last.lists);
  const Last& last = candidates[random.categorical(weights)];
  std::vector<int64_t> factors(n, 1);
  factors[n - 1] = last.value;
  std::vector<int> parts;
  for (size_t p = 0; n > 1 && p < primes.size(); ++p) {
    sample_composition(random, primes[p].exponent - last.exponents[p], n - 1, parts);
    for (size_t i : indices_of(parts)) {
      for (int e = 0; e < parts[i]; ++e) factors[i] *= primes[p].prime;
    }
  }
  return factors;
}

std::vector<int64_t> sample_partitioned_tiling(Random& random, int64_t extent, int64_t n, size_t position,
                                               int64_t inner_factor) {
  std::vector<int64_t> factors(n, 1);
  auto outer = static_cast<int64_t>(position), inner = n - outer;
  for (const PrimePower& power : factorize(extent)) {
    int least = 0;
    for (int64_t rest = inner_factor; rest % power.prime == 0; rest /= power.prime) ++least;
    // Choose how much of the exponent the inner factors take, then how it is distributed.
    int taken = power.exponent;
    if (outer > 0) {
      std::vector<double> weights;
      for (int e = least; e <= power.exponent; ++e) {
        weights.push_back(compositions(e, inner) * compositions(power.exponent - e, outer));
      }
      taken = least + static_cast<int>(random.categorical(weights));
    }
    std::vector<int> parts, inner_parts;
    if (outer > 0) sample_composition(random, power.exponent - taken, outer, parts);
    sample_composition(random, taken, inner, inner_parts);
    append_range(parts, inner_parts);
    for (size_t i : indices_of(parts)) {
      for (int e = 0; e < parts[i]; ++e) factors[i] *= power.prime;
    }
  }
  return factors;
}

}  // namespace tilewright::schedule
