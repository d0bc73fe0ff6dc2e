// What intrinsics compute.
#pragma once

#include <cstdint>

#include "ir/interpreter_code.h"

namespace tilewright::interpreter {

/// A floating-point function; in float unless `wide`.
double compute_float(Intrinsic intrinsic, double a, double b, double c, bool wide);
/// isnan, isinf, isfinite.
bool test_float(Intrinsic intrinsic, double value);
/// An integer function of arguments of the given type; `rest` holds the third and fourth.
int64_t compute_int(Intrinsic intrinsic, DataType type, int64_t a, int64_t b, const Slot* rest);
bool is_float_test(Intrinsic intrinsic);

}  // namespace tilewright::interpreter
