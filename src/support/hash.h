// 128-bit hashing that gives the same value in every process (no addresses, no seeds).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tilewright {

struct Hash128 {
  uint64_t hi = 0, lo = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
  std::string hex() const;
};

/// Mixes words into two lanes; a step is a product of 128 bits, folded (as in wyhash, Wang Yi 2019).
class Hasher {
 public:
  void word(uint64_t value) {
    a_ = fold(a_ ^ value, 0x9e3779b97f4a7c15ULL) + value;
    b_ = fold(b_ + value, 0xd6e8feb86659fd93ULL) ^ 0xc2b2ae3d27d4eb4fULL;
  }
  void bytes(std::string_view text);
  void real(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    word(bits);
  }
  void hash(const Hash128& value) {
    word(value.hi);
    word(value.lo);
  }
  Hash128 finish() const { return {mix(a_), mix(b_)}; }

 private:
  __extension__ using Wide = unsigned __int128;
  static uint64_t fold(uint64_t x, uint64_t y) {
    Wide product = static_cast<Wide>(x) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  /// The finalizer of SplitMix64 (Steele et al. 2014).
  static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  uint64_t a_ = 0x243f6a8885a308d3ULL, b_ = 0x13198a2e03707344ULL;
};

}  // namespace tilewright

template <>
struct std::hash<tilewright::Hash128> {
  size_t operator()(const tilewright::Hash128& value) const noexcept { return value.lo; }
};
