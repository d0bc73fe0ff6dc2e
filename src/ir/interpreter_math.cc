#include "ir/interpreter_math.h"

#include <bit>
#include <cmath>

#include "ir/numeric.h"

namespace tilewright::interpreter {
namespace {

template <class T>
T compute(Intrinsic intrinsic, T a, T b, T c) {
  switch (intrinsic) {
    case Intrinsic::k_exp:
      return std::exp(a);
    case Intrinsic::k_exp2:
      return std::exp2(a);
    case Intrinsic::k_exp10:
      return std::pow(T{10}, a);
    case Intrinsic::k_log:
      return std::log(a);
    case Intrinsic::k_log2:
      return std::log2(a);
    case Intrinsic::k_log10:
      return std::log10(a);
    case Intrinsic::k_log1p:
      return std::log1p(a);
    case Intrinsic::k_sqrt:
      return std::sqrt(a);
    case Intrinsic::k_rsqrt:
      return T{1} / std::sqrt(a);
    case Intrinsic::k_sigmoid:
      return T{1} / (T{1} + std::exp(-a));
    case Intrinsic::k_tanh:
      return std::tanh(a);
    case Intrinsic::k_tan:
      return std::tan(a);
    case Intrinsic::k_cos:
      return std::cos(a);
    case Intrinsic::k_cosh:
      return std::cosh(a);
    case Intrinsic::k_sin:
      return std::sin(a);
    case Intrinsic::k_sinh:
      return std::sinh(a);
    case Intrinsic::k_asin:
      return std::asin(a);
    case Intrinsic::k_acos:
      return std::acos(a);
    case Intrinsic::k_atan:
      return std::atan(a);
    case Intrinsic::k_asinh:
      return std::asinh(a);
    case Intrinsic::k_acosh:
      return std::acosh(a);
    case Intrinsic::k_atanh:
      return std::atanh(a);
    case Intrinsic::k_erf:
      return std::erf(a);
    case Intrinsic::k_floor:
      return std::floor(a);
    case Intrinsic::k_ceil:
      return std::ceil(a);
    case Intrinsic::k_round:
      return std::round(a);
    case Intrinsic::k_nearbyint:
      return std::nearbyint(a);
    case Intrinsic::k_trunc:
      return std::trunc(a);
    case Intrinsic::k_fabs:
      return std::fabs(a);
    case Intrinsic::k_atan2:
      return std::atan2(a, b);
    case Intrinsic::k_copysign:
      return std::copysign(a, b);
    case Intrinsic::k_fmod:
      return std::fmod(a, b);
    case Intrinsic::k_hypot:
      return std::hypot(a, b);
    case Intrinsic::k_nextafter:
      return std::nextafter(a, b);
    case Intrinsic::k_pow:
      return std::pow(a, b);
    case Intrinsic::k_fma:
      return std::fma(a, b, c);
    default:
      return a;
  }
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

}  // namespace

double compute_float(Intrinsic intrinsic, double a, double b, double c, bool wide) {
  if (wide) return compute<double>(intrinsic, a, b, c);
  return compute<float>(intrinsic, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

bool is_float_test(Intrinsic intrinsic) {
  return intrinsic == Intrinsic::k_isnan || intrinsic == Intrinsic::k_isinf || intrinsic == Intrinsic::k_isfinite;
}

bool test_float(Intrinsic intrinsic, double value) {
  if (intrinsic == Intrinsic::k_isnan) return std::isnan(value);
  return intrinsic == Intrinsic::k_isinf ? std::isinf(value) : std::isfinite(value);
}

int64_t compute_int(Intrinsic intrinsic, DataType type, int64_t a, int64_t b, const Slot* rest) {
  auto in_range = [&] { return b >= 0 && b < type.bits; };
  uint64_t bits = static_cast<uint64_t>(wrap_int(DataType::uint(type.bits), a));
  switch (intrinsic) {
    case Intrinsic::k_bitwise_and:
      return a & b;
    case Intrinsic::k_bitwise_or:
      return a | b;
    case Intrinsic::k_bitwise_xor:
      return a ^ b;
    case Intrinsic::k_bitwise_not:
      return wrap_int(type, ~a);
    case Intrinsic::k_shift_left:
      return in_range() ? wrap_int(type, static_cast<int64_t>(static_cast<uint64_t>(a) << b)) : 0;
    case Intrinsic::k_shift_right:
      if (!in_range()) return type.is_int() && a < 0 ? -1 : 0;
      return type.is_int() ? a >> b : static_cast<int64_t>(bits >> b);
    case Intrinsic::k_popcount:
      return std::popcount(bits);
    case Intrinsic::k_clz:
      return std::countl_zero(bits) - (64 - type.bits);
    case Intrinsic::k_fabs:
      return type.is_int() && a < 0 ? wrap_int(type, static_cast<int64_t>(-static_cast<uint64_t>(a))) : a;
    case Intrinsic::k_q_multiply_shift:
      return wrap_int(type, multiply_shift(a, b, rest[0].i, rest[1].i));
    case Intrinsic::k_dp4a:
      return wrap_int(type, dot_of_bytes(a, b, rest[0].i));
    default:
      return a;
  }
}

}  // namespace tilewright::interpreter
