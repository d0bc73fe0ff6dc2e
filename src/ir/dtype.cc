#include "ir/dtype.h"

#include <charconv>

namespace tilewright {
namespace {

struct Named {
  std::string_view name;
  TypeCode code;
  uint8_t bits;
};

constexpr Named kFixed[] = {
    {"bool", TypeCode::kUInt, 1},
    {"bfloat16", TypeCode::kBFloat, 16},
    {"float8_e4m3fn", TypeCode::kFloat8E4M3FN, 8},
    {"float8_e5m2", TypeCode::kFloat8E5M2, 8},
    {"float4_e2m1fn", TypeCode::kFloat4E2M1FN, 4},
    {"handle", TypeCode::kHandle, 64},
    {"void", TypeCode::kHandle, 0},
};
constexpr Named kFamilies[] = {
    {"uint", TypeCode::kUInt, 0},
    {"int", TypeCode::kInt, 0},
    {"float", TypeCode::kFloat, 0},
};

bool valid_bits(TypeCode code, int bits) {
  if (code == TypeCode::kFloat) return bits == 16 || bits == 32 || bits == 64;
  return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

/// Reads a decimal number at the front of `text` and removes it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  text.remove_prefix(end - text.data());
  return value;
}

}  // namespace

std::string DataType::str() const {
  std::string text;
  for (const Named& named : kFixed) {
    if (named.code == code && named.bits == bits) text = named.name;
  }
  if (text.empty()) {
    for (const Named& family : kFamilies) {
      if (family.code == code) text = std::string(family.name) + std::to_string(bits);
    }
  }
  if (scalable) return text + "xvscalex" + std::to_string(lanes);
  return lanes == 1 ? text : text + "x" + std::to_string(lanes);
}

std::optional<DataType> DataType::parse(std::string_view text) {
  DataType type;
  bool has_family = false;
  for (const Named& named : kFixed) {
    if (text.starts_with(named.name)) {
      type.code = named.code;
      type.bits = named.bits;
      text.remove_prefix(named.name.size());
      has_family = true;
      break;
    }
  }
  for (const Named& family : kFamilies) {
    if (has_family || !text.starts_with(family.name)) continue;
    text.remove_prefix(family.name.size());
    int bits = 32;  // "int" and "float" alone mean 32 bits
    if (!text.empty() && text[0] != 'x') {
      auto number = take_number(text);
      if (!number) return std::nullopt;
      bits = *number;
    }
    if (!valid_bits(family.code, bits)) return std::nullopt;
    type.code = family.code;
    type.bits = static_cast<uint8_t>(bits);
    has_family = true;
  }
  if (!has_family) return std::nullopt;
  if (text.empty()) return type;
  if (text.starts_with("xvscale")) {
    type.scalable = true;
    text.remove_prefix(7);
  }
  if (!text.starts_with("x")) return std::nullopt;
  text.remove_prefix(1);
  auto lanes = take_number(text);
  if (!lanes || *lanes < 1 || *lanes > 65535 || !text.empty()) return std::nullopt;
  type.lanes = static_cast<uint16_t>(*lanes);
  return type;
}

}  // namespace tilewright
