#include "search/measure/result_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "ir/numeric.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

constexpr int64_t kChunk = 1 << 16;  // between two looks at the cancel flag

/// Reads elements of a type that C++ has, too.
template <class T>
struct Native {
  T operator()(const std::byte* from) const {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
};

/// Reads floats of up to 16 bits by a table of all their values.
struct TableFloat {
  explicit TableFloat(DataType dtype) : is_byte_(dtype.bytes() == 1), values_(table_of(dtype).data()) {}
  double operator()(const std::byte* from) const {
    return values_[is_byte_ ? Native<uint8_t>()(from) : Native<uint16_t>()(from)];
  }

 private:
  static const std::vector<float>& table_of(DataType dtype) {
    static std::mutex mutex;
    static std::map<uint64_t, std::vector<float>> tables;
    const std::lock_guard lock(mutex);
    std::vector<float>& table = tables[dtype.packed()];
    if (table.empty()) {
      table.resize(size_t{1} << 8 * dtype.bytes());
      for (size_t i : indices_of(table)) {
        const auto bits = static_cast<uint16_t>(i);
        table[i] = static_cast<float>(load_float(dtype, &bits));
      }
    }
    return table;
  }

  bool is_byte_;
  const float* values_;
};

std::string index_text(int64_t position, std::span<const int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

/// A NaN with a payload that no computation produces; for the formats without payload, any NaN.
uint64_t nan_pattern(DataType dtype) {
  switch (dtype.code) {
    case TypeCode::kBFloat:
      return 0x7fad;
    case TypeCode::kFloat:
      return dtype.bits == 16 ? 0x7ead : dtype.bits == 32 ? 0x7fc0adad : 0x7ff800000000adad;
    default:
      return 0x7f;
  }
}

/// float4_e2m1fn has no NaN; it is filled like the integers.
bool has_nan(DataType dtype) { return dtype.is_float() && dtype.bits >= 8; }

/// Returns the value that fill_with_wrong_values() writes for one element.
void wrong_value(DataType dtype, const std::byte* expected, std::byte* to) {
  const int size = dtype.bytes();
  if (!has_nan(dtype)) {
    for (int i = 0; i < size; ++i) to[i] = ~expected[i];
    return;
  }
  // Where NaN is right, any number is wrong; but what nothing computes was found in memory and left alone.
  const uint64_t untouched = nan_pattern(dtype);
  const bool was_written = size == 1 || std::memcmp(expected, &untouched, size) != 0;
  const bool is_nan = was_written && std::isnan(load_float(dtype, expected));
  const uint64_t pattern = is_nan ? 0x2a2a2a2a2a2a2a2a : untouched;
  std::memcpy(to, &pattern, size);
}

double allowed(const Allowance& allowance, double expected) {
  return allowance.relative * std::fabs(expected) + allowance.absolute;
}

/// The difference as a share of what is allowed: at most 1 is right. 0 for equal values, infinity for a NaN or an
/// infinity in the wrong place.
template <class T>
double excess(T expected, T got, const Allowance& allowance) {
  if (expected == got) return 0;
  const double e = static_cast<double>(expected), g = static_cast<double>(got);
  if (std::isnan(e) && std::isnan(g)) return 0;
  if (!std::isfinite(e) || !std::isfinite(g)) return INFINITY;
  const double limit = allowed(allowance, e);
  return limit > 0 ? std::fabs(g - e) / limit : INFINITY;
}

template <class Load>
CheckReport compare(const Load& load, int size, const std::byte* expected, const std::byte* got, int64_t count,
                    const Allowance& allowance, const std::atomic<bool>* cancel) {
  CheckReport report;
  report.total = count;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    if (cancel && cancel->load(std::memory_order_relaxed)) {
      report.canceled = true;
      return report;
    }
    const int64_t end = std::min(count, begin + kChunk);
    // Locals: through the reference to bytes, the compiler has to expect that the report changes, too.
    double largest = 0;
    int64_t wrong = 0, first = -1;
    for (int64_t i = begin; i < end; ++i) {
      const double share = excess(load(expected + i * size), load(got + i * size), allowance);
      largest = std::max(largest, share);
      if (share > 1 && wrong++ == 0) first = i;
    }
    report.largest = std::max(report.largest, largest);
    if (report.wrong == 0) report.first_wrong = first;
    report.wrong += wrong;
  }
  return report;
}

/// Calls `f` with the magnitude of each finite element that is smaller than `below`.
template <class Load, class F>
void for_each_magnitude(const Load& load, std::span<const std::byte> values, size_t size, double below, F f) {
  for (size_t at = 0; at < values.size(); at += size) {
    const double magnitude = std::fabs(static_cast<double>(load(values.data() + at)));
    if (magnitude < below) f(magnitude);
  }
}

/// The root mean square of the elements that sums may have computed, so without infinities and NaN. Nor do constants
/// count that stand for "nothing": -1e9 of a mask, the lowest number as the maximum of no elements. They are one value
/// in several elements, which is a thousand times as large as all others, and would allow these any value.
template <class Load>
double rms_of_sums(const Load& load, std::span<const std::byte> values, size_t size) {
  constexpr double kFarLarger = 1024;
  constexpr int kMostConstants = 4;
  double below = INFINITY;
  for (int constants = 0;; ++constants) {
    double largest = 0, second = 0;
    int64_t alike = 0;
    for_each_magnitude(load, values, size, below, [&](double magnitude) {
      if (magnitude > largest) {
        second = largest;
        largest = magnitude;
        alike = 0;
      }
      if (magnitude == largest) {
        ++alike;
      } else {
        second = std::max(second, magnitude);
      }
    });
    if (largest == 0) return 0;
    if (constants < kMostConstants && alike > 1 && second > 0 && second < largest / kFarLarger) {
      below = largest;
      continue;
    }
    // Relative to the largest, so that squares of float64 neither overflow nor vanish.
    double sum = 0;
    int64_t count = 0;
    for_each_magnitude(load, values, size, below, [&](double magnitude) {
      const double share = magnitude / largest;
      sum += share * share;
      ++count;
    });
    return largest * std::sqrt(sum / static_cast<double>(count));
  }
}

template <class F>
auto with_loader(DataType dtype, F f) {
  const int bits = dtype.bytes() * 8;
  if (dtype.code == TypeCode::kFloat && bits == 32) return f(Native<float>());
  if (dtype.code == TypeCode::kFloat && bits == 64) return f(Native<double>());
  if (dtype.is_float()) return f(TableFloat(dtype));
  if (dtype.is_uint() || dtype.is_handle()) {
    if (bits == 8) return f(Native<uint8_t>());
    if (bits == 16) return f(Native<uint16_t>());
    return bits == 32 ? f(Native<uint32_t>()) : f(Native<uint64_t>());
  }
  if (bits == 8) return f(Native<int8_t>());
  if (bits == 16) return f(Native<int16_t>());
  return bits == 32 ? f(Native<int32_t>()) : f(Native<int64_t>());
}

}  // namespace

std::string Tolerance::to_json() const { return fmt::format("{{\"relative\":{},\"spread\":{}}}", relative, spread); }

double unit_roundoff(DataType type) {
  if (!type.is_float()) return 0;
  int precision = 0;  // significand bits, the implicit one included
  switch (type.code) {
    case TypeCode::kBFloat:
      precision = 8;
      break;
    case TypeCode::kFloat8E4M3FN:
      precision = 4;
      break;
    case TypeCode::kFloat8E5M2:
      precision = 3;
      break;
    case TypeCode::kFloat4E2M1FN:
      precision = 2;
      break;
    default:
      precision = type.bits == 16 ? 11 : type.bits == 32 ? 24 : 53;
  }
  return std::ldexp(1.0, -precision);
}

Tolerance tolerance_for(DataType stored, DataType accumulated, int64_t reduction_length) {
  constexpr double kLambda = 8;
  if (!stored.is_float()) return {};
  const double length = static_cast<double>(std::max<int64_t>(reduction_length, 1));
  const double spread = 2 * kLambda * std::sqrt(length) * unit_roundoff(accumulated);
  return {spread + 2 * unit_roundoff(stored), spread};
}

Allowance allowance_for(DataType dtype, std::span<const std::byte> expected, const Tolerance& tolerance) {
  if (tolerance.spread == 0) return {tolerance.relative, 0};
  return with_loader(dtype, [&](auto load) -> Allowance {
    const auto size = static_cast<size_t>(dtype.bytes());
    // The smallest positive number has the bit pattern 1 in every format. Where results are that small, a rounding is a
    // step of it.
    const std::byte smallest[8] = {std::byte{1}};
    const double step = dtype.is_float() ? static_cast<double>(load(smallest)) : 0;
    const double rms = rms_of_sums(load, expected.first(expected.size() / size * size), size);
    return {tolerance.relative, tolerance.spread * rms + step};
  });
}

CheckReport check_result(const std::string& name, DataType dtype, std::span<const int64_t> shape,
                         std::span<const std::byte> expected, std::span<const std::byte> got,
                         const Allowance& allowance, const std::atomic<bool>* cancel) {
  const int size = dtype.bytes();
  const auto count = static_cast<int64_t>(std::min(expected.size(), got.size())) / size;
  return with_loader(dtype, [&](auto load) {
    CheckReport report = compare(load, size, expected.data(), got.data(), count, allowance, cancel);
    if (report.wrong == 0) return report;
    const std::byte* expected_at = expected.data() + report.first_wrong * size;
    const std::byte* got_at = got.data() + report.first_wrong * size;
    std::byte fill[8];
    wrong_value(dtype, expected_at, fill);
    const auto expected_value = load(expected_at);
    report.message = name + index_text(report.first_wrong, shape);
    if (std::memcmp(fill, got_at, size) == 0) {
      report.message += fmt::format(" was never written (expected {})", expected_value);
    } else {
      report.message += fmt::format(": expected {}, got {}", expected_value, load(got_at));
      const double limit = allowed(allowance, static_cast<double>(expected_value));
      if (limit > 0 && std::isfinite(limit))
        report.message += fmt::format(" (a difference of {:.2g} is allowed)", limit);
    }
    report.message +=
        fmt::format("; {} of {} elements {} wrong", report.wrong, report.total, report.wrong == 1 ? "is" : "are");
    return report;
  });
}

void fill_with_wrong_values(DataType dtype, std::span<const std::byte> expected, std::span<std::byte> output) {
  const size_t size = static_cast<size_t>(dtype.bytes());
  const size_t bytes = std::min(expected.size(), output.size()) / size * size;
  for (size_t at = 0; at < bytes; at += size) wrong_value(dtype, expected.data() + at, output.data() + at);
}

}  // namespace tilewright::search
