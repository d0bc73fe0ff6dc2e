#include "ir/meaning.h"

#include <cmath>

#include "ir/numeric.h"

namespace tilewright {
namespace {

// ---- names that the column `meaning` of ir/intrinsics.def uses ----------------------------------------------------

template <class T>
T sigmoid(T a) {
  T small = std::exp(-std::fabs(a));  // does not overflow
  return (a < 0 ? small : T{1}) / (T{1} + small);
}

/// a * 2^n
template <class T>
T scaled(T a, T n) {
  constexpr T kFar = 1 << 20;  // beyond every exponent
  return std::ldexp(a, std::isnan(n) ? 0 : static_cast<int>(std::fmin(std::fmax(n, -kFar), kFar)));
}

uint64_t bits_of(DataType type, int64_t a) { return static_cast<uint64_t>(wrap_int(DataType::uint(type.bits), a)); }

int64_t shift_left(DataType type, int64_t a, int64_t count) {
  return count >= 0 && count < type.bits ? static_cast<int64_t>(static_cast<uint64_t>(a) << count) : 0;
}

int64_t shift_right(DataType type, int64_t a, int64_t count) {
  if (count < 0 || count >= type.bits) return type.is_int() && a < 0 ? -1 : 0;
  return type.is_int() ? a >> count : static_cast<int64_t>(bits_of(type, a) >> count);
}

int64_t magnitude(DataType type, int64_t a) {
  return type.is_int() && a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a;
}

/// round(a * b * 2^-s) of numbers with q fractional bits: a fixed-point product, rounded half up.
int64_t multiply_shift(int64_t a, int64_t b, int64_t q, int64_t s) {
  __int128 product = static_cast<__int128>(a) * b;
  int64_t shift = q + s;
  if (shift <= 0) return static_cast<int64_t>(product << -shift);
  return static_cast<int64_t>((product + (static_cast<__int128>(1) << (shift - 1))) >> shift);
}

/// c + the product of two vectors of four bytes, each packed into an int32.
int64_t dot_of_bytes(int64_t a, int64_t b, int64_t c) {
  for (int k = 0; k < 4; ++k) {
    c += static_cast<int64_t>(static_cast<int8_t>(a >> (8 * k))) * static_cast<int8_t>(b >> (8 * k));
  }
  return c;
}

// ---- the table -----------------------------------------------------------------------------------------------------

template <class T>
double compute_in(Intrinsic intrinsic, T a, T b, T c) {
  using W = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  switch (intrinsic) {
#define FLOATS(name, arity, folds, cost, meaning) \
  case Intrinsic::k_##name:                       \
    return static_cast<T>(meaning);
#define INTEGERS(...)
#define NUMBERS(name, arity, typing, folds, cost, of_floats, of_integers) \
  case Intrinsic::k_##name:                                               \
    return of_floats;
#define X(...)
#include "ir/intrinsics.def"
#undef X
    default:
      return a;
  }
}

}  // namespace

double compute(Intrinsic intrinsic, DataType type, double a, double b, double c) {
  if (type.bits == 64) return compute_in<double>(intrinsic, a, b, c);
  double result = compute_in(intrinsic, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  return type.bits == 32 ? result : round_float(type, result);
}

int64_t compute(Intrinsic intrinsic, DataType type, const IntArgs& args) {
  [[maybe_unused]] auto [a, b, c, d] = args;
  auto value = [&]() -> int64_t {
    switch (intrinsic) {
#define FLOATS(...)
#define INTEGERS(name, arity, typing, script, folds, cost, meaning) \
  case Intrinsic::k_##name:                                         \
    return meaning;
#define NUMBERS(name, arity, typing, folds, cost, of_floats, of_integers) \
  case Intrinsic::k_##name:                                               \
    return of_integers;
#define X(...)
#include "ir/intrinsics.def"
#undef X
      default:
        return a;
    }
  };
  return wrap_int(type, value());
}

}  // namespace tilewright
