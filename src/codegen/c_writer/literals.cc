#include "codegen/c_writer/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::codegen {
namespace {

/// With parentheses around a sign: it may stand behind an operator.
std::string number(int64_t value) { return value < 0 ? fmt::format("({})", value) : std::to_string(value); }

}  // namespace

std::string integer_literal(DataType type, int64_t value) {
  if (type.is_bool()) return value ? "true" : "false";
  if (type.is_uint()) {
    return type.bits == 64 ? fmt::format("{}UL", static_cast<uint64_t>(value)) : fmt::format("{}u", value);
  }
  if (type.bits == 64)
    return value == INT64_MIN ? "(-9223372036854775807L - 1)" : number(value) + (value < 0 ? "" : "L");
  return value == INT32_MIN ? "(-2147483647 - 1)" : number(value);
}

std::string float_literal(const Dialect& dialect, DataType type, double value) {
  if (std::isnan(value)) return dialect.nan(type);
  if (std::isinf(value)) {
    return value < 0 ? fmt::format("(-{})", dialect.infinity(type)) : dialect.infinity(type);
  }
  const bool is_double = type.bits == 64;
  std::string text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return std::signbit(value) ? fmt::format("({})", text) : text;
}

bool has_no_digits(const std::string& bytes, DataType element) {
  const size_t size = static_cast<size_t>(element.bytes());
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    float f = 0;
    double d = 0;
    std::copy_n(bytes.data() + at, size, size == 8 ? reinterpret_cast<char*>(&d) : reinterpret_cast<char*>(&f));
    if (!std::isfinite(d) || !std::isfinite(f)) return true;
  }
  return false;
}

}  // namespace tilewright::codegen
