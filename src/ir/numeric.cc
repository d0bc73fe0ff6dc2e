#include "ir/numeric.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tilewright {
namespace {

/// A binary format by the size of its fields. `infinity`: the top exponent is reserved; otherwise it holds finite
/// values up to `top_mantissa`.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool infinity;
  int top_mantissa;  // largest mantissa of the top exponent when there is no infinity
  bool has_nan;
};

Format format_of(DataType type) {
  switch (type.code) {
    case TypeCode::kBFloat:
      return {8, 7, 127, true, 0, true};
    case TypeCode::kFloat8E4M3FN:
      return {4, 3, 7, false, 6, true};
    case TypeCode::kFloat8E5M2:
      return {5, 2, 15, true, 0, true};
    case TypeCode::kFloat4E2M1FN:
      return {2, 1, 1, false, 1, false};
    default:
      return {5, 10, 15, true, 0, true};  // float16
  }
}

double max_of(const Format& f) {
  int top = (1 << f.exponent_bits) - 1;
  if (f.infinity) return std::ldexp(2.0 - std::ldexp(1.0, -f.mantissa_bits), top - 1 - f.bias);
  return std::ldexp(1.0 + std::ldexp(f.top_mantissa, -f.mantissa_bits), top - f.bias);
}

double round_to(const Format& f, double value) {
  if (std::isnan(value)) return f.has_nan ? value : std::copysign(0.0, value);
  double magnitude = std::fabs(value);
  double largest = max_of(f);
  int exponent = magnitude == 0 ? 0 : std::ilogb(magnitude);
  int smallest = 1 - f.bias;
  int quantum = std::max(exponent, smallest) - f.mantissa_bits;
  double rounded =
      std::isinf(magnitude) ? magnitude : std::ldexp(std::nearbyint(std::ldexp(magnitude, -quantum)), quantum);
  if (rounded > largest) {
    if (f.infinity) {
      rounded = std::numeric_limits<double>::infinity();
    } else if (f.has_nan) {
      rounded = std::numeric_limits<double>::quiet_NaN();
    } else {
      rounded = largest;
    }
  }
  return std::copysign(rounded, value);
}

uint32_t encode(const Format& f, double value) {
  uint32_t sign = std::signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  uint32_t top = (1u << f.exponent_bits) - 1;
  if (std::isnan(value)) {
    uint32_t mantissa = f.infinity ? 1u << (f.mantissa_bits - 1) : (1u << f.mantissa_bits) - 1;
    return sign | top << f.mantissa_bits | mantissa;
  }
  value = round_to(f, value);
  if (std::isnan(value)) return encode(f, value);
  if (std::isinf(value)) return sign | top << f.mantissa_bits;
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - f.bias) {  // subnormal
    return sign | static_cast<uint32_t>(std::ldexp(magnitude, f.mantissa_bits - (1 - f.bias)));
  }
  uint32_t mantissa =
      static_cast<uint32_t>(std::ldexp(magnitude, f.mantissa_bits - exponent)) & ((1u << f.mantissa_bits) - 1);
  return sign | static_cast<uint32_t>(exponent + f.bias) << f.mantissa_bits | mantissa;
}

double decode(const Format& f, uint32_t bits) {
  double sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1 ? -1.0 : 1.0;
  uint32_t top = (1u << f.exponent_bits) - 1;
  uint32_t exponent = bits >> f.mantissa_bits & top;
  uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  if (exponent == top) {
    if (f.infinity)
      return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    if (f.has_nan && mantissa > static_cast<uint32_t>(f.top_mantissa)) return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -f.mantissa_bits), static_cast<int>(exponent) - f.bias);
}

}  // namespace

int64_t wrap_int(DataType type, int64_t value) {
  if (type.bits >= 64 || type.bits == 0) return value;
  int shift = 64 - type.bits;
  uint64_t low = static_cast<uint64_t>(value) << shift;
  return type.is_uint() ? static_cast<int64_t>(low >> shift) : static_cast<int64_t>(low) >> shift;
}

double round_float(DataType type, double value) {
  if (type.code == TypeCode::kFloat && type.bits == 64) return value;
  if (type.code == TypeCode::kFloat && type.bits == 32) return static_cast<float>(value);
  return round_to(format_of(type), value);
}

void store_element(DataType type, double as_float, int64_t as_int, void* to) {
  if (type.is_integral() || type.is_handle()) {
    std::memcpy(to, &as_int, type.bytes());
  } else if (type.bits == 64) {
    std::memcpy(to, &as_float, 8);
  } else if (type.bits == 32) {
    float single = static_cast<float>(as_float);
    std::memcpy(to, &single, 4);
  } else {
    uint32_t bits = encode(format_of(type), as_float);
    std::memcpy(to, &bits, type.bytes());
  }
}

double load_float(DataType type, const void* from) {
  if (type.bits == 64) {
    double value;
    std::memcpy(&value, from, 8);
    return value;
  }
  if (type.bits == 32) {
    float value;
    std::memcpy(&value, from, 4);
    return value;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, from, type.bytes());
  return decode(format_of(type), bits);
}

int64_t load_int(DataType type, const void* from) {
  int64_t value = 0;
  std::memcpy(&value, from, type.bytes());
  return wrap_int(type, value);
}

int64_t int_min(DataType type) {
  if (type.is_uint()) return 0;
  return type.bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (type.bits - 1));
}
int64_t int_max(DataType type) {
  if (type.is_uint()) return type.bits == 64 ? -1 : (int64_t{1} << type.bits) - 1;
  return type.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (type.bits - 1)) - 1;
}
double float_max(DataType type) {
  if (type.code == TypeCode::kFloat && type.bits == 64) return std::numeric_limits<double>::max();
  if (type.code == TypeCode::kFloat && type.bits == 32) return std::numeric_limits<float>::max();
  return max_of(format_of(type));
}

int64_t float_to_int(DataType type, double value) {
  if (std::isnan(value)) return 0;
  double low = type.is_uint() ? 0.0 : -std::ldexp(1.0, type.bits - 1);
  double high = std::ldexp(1.0, type.is_uint() ? type.bits : type.bits - 1);
  if (value <= low) return int_min(type);
  if (value >= high) return int_max(type);
  return type.is_uint() ? static_cast<int64_t>(static_cast<uint64_t>(value)) : static_cast<int64_t>(value);
}

double int_to_float(DataType from, DataType to, int64_t value) {
  bool big = from.is_uint() && value < 0;
  auto bits = static_cast<uint64_t>(value);
  if (to.bits == 64) return big ? static_cast<double>(bits) : static_cast<double>(value);
  // Straight into float32: by way of double, 64-bit integers would round twice.
  float near = big ? static_cast<float>(bits) : static_cast<float>(value);
  return to.bits == 32 ? near : round_float(to, near);
}

double round_result(DataType type, double exact) {
  if (type.bits == 64) return exact;
  auto near = static_cast<float>(exact);
  return type.bits == 32 ? near : round_float(type, near);
}

}  // namespace tilewright
