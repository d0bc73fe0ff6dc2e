// Numbers as C spells them.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/c_writer/c_writer.h"

namespace tilewright::codegen {

std::string integer_literal(DataType type, int64_t value);
/// The shortest decimal that reads back as the same number; infinity and NaN as the dialect has them.
std::string float_literal(const Dialect& dialect, DataType type, double value);
/// Whether one of the float32 or float64 numbers, given by their bytes, is infinite or NaN.
bool has_no_digits(const std::string& bytes, DataType element);

}  // namespace tilewright::codegen
