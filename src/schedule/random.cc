#include "schedule/random.h"

#include "support/ranges.h"

namespace tilewright::schedule {

Random Random::derive(uint64_t seed, uint64_t round, uint64_t index) {
  // Each number passes through the mixer before the next is added, so neighbors in any coordinate are unrelated.
  return Random(mix(mix(mix(seed) + round) + index));
}

uint64_t Random::below(uint64_t n) {
  // Lemire, "Fast random integer generation in an interval" (2019): reject the few products that would favor some.
  unsigned __int128 product = static_cast<unsigned __int128>(next()) * n;
  if (static_cast<uint64_t>(product) < n) {
    uint64_t threshold = -n % n;
    while (static_cast<uint64_t>(product) < threshold) product = static_cast<unsigned __int128>(next()) * n;
  }
  return static_cast<uint64_t>(product >> 64);
}

size_t Random::categorical(std::span<const double> weights) {
  double total = 0;
  for (double w : weights) total += w;
  double at = uniform() * total;
  size_t last_possible = 0;
  for (size_t i : indices_of(weights)) {
    if (weights[i] <= 0) continue;
    last_possible = i;
    if (at < weights[i]) return i;
    at -= weights[i];
  }
  return last_possible;  // rounding left a sliver beyond the last weight
}

}  // namespace tilewright::schedule
