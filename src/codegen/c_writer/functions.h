// Functions that the writer puts in front of kernels: operations whose edges C leaves open, once per type.
#pragma once

#include <map>
#include <string>

#include "codegen/c_writer/c_writer.h"

namespace tilewright::codegen {

/// Floats that are computed in float, and have their own form in memory only.
inline bool is_narrow(DataType type) { return type.is_float() && type.bits < 32; }

/// The function of C on floats, by c_writer/intrinsics.def; empty where there is none.
std::string_view c_math(Intrinsic intrinsic);

/// Returns the call of a function of one integer of `bits` bits, by c_writer/intrinsics.def. `value` is the text of the
/// argument, of an unsigned type. Returns an empty text if the table has no such row.
std::string call_on_integer(const Dialect& dialect, Intrinsic intrinsic, int bits, const std::string& value);

class Functions {
 public:
  explicit Functions(const Dialect& dialect) : dialect_(dialect) {}

  /// Names of functions, whose text is then part of all_text().
  std::string division(std::string_view operation, DataType type);  ///< "truncdiv", "truncmod", "floordiv", "floormod"
  std::string min_max(bool is_min, DataType type);
  std::string shift(bool is_left, DataType type);
  std::string to_integer(DataType from, DataType to);
  std::string sigmoid(DataType type);
  /// Conversions of floats below 32 bits between their bits in memory and float, and the rounding of a float.
  std::string load(DataType type);
  std::string store(DataType type);
  std::string round(DataType type);
  /// Round a double, or an integer of 32 or 64 bits, to float by round-to-odd, so that rounding the result to 16 bits
  /// does not round twice.
  std::string round_to_odd(DataType from);

  /// Converts the second argument of ldexp from type `of` to int, with saturation: larger numbers exceed every
  /// exponent.
  std::string power_of_two(std::string value, DataType of);
  /// The dot product of four bytes of these types, added to a value of type `sum`.
  std::string dot4(DataType left, DataType right, DataType sum);

  /// An atomic operation on memory of the scope; empty where the dialect has none.
  std::string atomic(Intrinsic intrinsic, DataType type, const std::string& scope);

  std::string all_text() const;
  /// Adds a helper function of the dialect; `front`: declarations before it.
  std::string add(const std::string& name, const std::string& text, const std::string& front = "");

 private:
  const Dialect& dialect_;
  std::map<std::string, size_t> known_;
  std::vector<std::string> texts_;
};

}  // namespace tilewright::codegen
