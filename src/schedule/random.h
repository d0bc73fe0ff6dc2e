// Random numbers that are the same everywhere: our own generator and distributions, nothing of the C++ library's.
#pragma once

#include <cstdint>
#include <span>

namespace tilewright::schedule {

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, each output a bijective mix of a counter.
class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(mix(seed + kStep)) {}
  /// The stream of one candidate: independent of the sampling thread and of all other candidates.
  static Random derive(uint64_t seed, uint64_t round, uint64_t index);

  uint64_t next() { return mix(state_ += kStep); }
  /// Uniform in [0, n), n >= 1, without bias.
  uint64_t below(uint64_t n);
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// An index with probability proportional to its weight; weights are not negative and not all zero.
  size_t categorical(std::span<const double> weights);
  /// A generator of its own, while this one moves on.
  Random fork() { return Random(next()); }

  friend bool operator==(const Random&, const Random&) = default;

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace tilewright::schedule
