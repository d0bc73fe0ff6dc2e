// What operations compute, in one place: the interpreter and constant folding call these functions, and compiled code
// is tested against them.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/op.h"

namespace tilewright {

struct IntArgs {
  int64_t a = 0, b = 0, c = 0, d = 0;
};
/// An intrinsic of numbers of the floating-point type, rounded to it; 0 or 1 for one that gives bool. The row says
/// `of_floats`.
double compute(Intrinsic intrinsic, DataType type, double a, double b = 0, double c = 0);
/// An intrinsic of integers of the type, wrapped to it. The row says `of_integers`.
int64_t compute(Intrinsic intrinsic, DataType type, const IntArgs& args);

}  // namespace tilewright
