// Data types of scalars and vectors: {code, bits, lanes, scalable}, as in TVM v0.20 ("float32x4", "bool", "handle").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright {

enum class TypeCode : uint8_t {
  kInt,
  kUInt,
  kFloat,
  kHandle,
  kBFloat,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat4E2M1FN,
};

struct DataType {
  TypeCode code = TypeCode::kHandle;
  uint8_t bits = 0;    ///< 1 for bool; 0 with kHandle is void
  uint16_t lanes = 1;  ///< of a scalable vector: lanes per unit of vscale
  bool scalable = false;

  static constexpr DataType int_(int bits, int lanes = 1) { return make(TypeCode::kInt, bits, lanes); }
  static constexpr DataType uint(int bits, int lanes = 1) { return make(TypeCode::kUInt, bits, lanes); }
  static constexpr DataType float_(int bits, int lanes = 1) { return make(TypeCode::kFloat, bits, lanes); }
  static constexpr DataType bfloat16(int lanes = 1) { return make(TypeCode::kBFloat, 16, lanes); }
  static constexpr DataType bool_(int lanes = 1) { return make(TypeCode::kUInt, 1, lanes); }
  static constexpr DataType handle() { return make(TypeCode::kHandle, 64, 1); }
  static constexpr DataType void_() { return make(TypeCode::kHandle, 0, 1); }

  bool is_int() const { return code == TypeCode::kInt; }
  bool is_uint() const { return code == TypeCode::kUInt; }
  bool is_bool() const { return code == TypeCode::kUInt && bits == 1; }
  bool is_handle() const { return code == TypeCode::kHandle && bits != 0; }
  bool is_void() const { return code == TypeCode::kHandle && bits == 0; }
  /// Any binary floating-point format, bfloat16 and the 8- and 4-bit ones included.
  bool is_float() const { return code == TypeCode::kFloat || code >= TypeCode::kBFloat; }
  bool is_integral() const { return is_int() || is_uint(); }
  bool is_scalar() const { return lanes == 1 && !scalable; }
  bool is_vector() const { return !is_scalar(); }

  DataType element() const { return {code, bits, 1, false}; }
  DataType with_lanes(int new_lanes) const { return {code, bits, static_cast<uint16_t>(new_lanes), false}; }
  /// Same lanes, other element.
  DataType with_element(DataType e) const { return {e.code, e.bits, lanes, scalable}; }
  /// Bytes one element occupies in a buffer; types under 8 bits occupy one byte each (see docs/decisions).
  int bytes() const { return (bits + 7) / 8; }

  friend bool operator==(const DataType&, const DataType&) = default;
  /// "int32", "float16x8", "bool", "handle", "void", "bfloat16", "float8_e4m3fn", "int32xvscalex4".
  std::string str() const;
  static std::optional<DataType> parse(std::string_view text);
  uint64_t packed() const {
    return static_cast<uint64_t>(code) | uint64_t{bits} << 8 | uint64_t{lanes} << 16 | uint64_t{scalable} << 32;
  }

 private:
  static constexpr DataType make(TypeCode code, int bits, int lanes) {
    return {code, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes), false};
  }
};

}  // namespace tilewright
