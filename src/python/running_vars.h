// Variables of the loops and axes around the place where a program is being built. Each takes several values at run
// time, so `i == 0` has no truth value in Python. Sizes are different: Python code may ask whether one is the constant
// 1, as broadcasting does.
#pragma once

#include <nanobind/nanobind.h>

#include "ir/expr.h"

namespace tilewright::python {

/// Whether, while a program is being built, the value of the expression depends on memory, or on a loop or axis around,
/// or on an index of a formula that is being evaluated.
bool varies(const Expr& e);

void bind_running_vars(nanobind::module_& m);

}  // namespace tilewright::python
