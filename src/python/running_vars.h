// Tracks the loop variables and axes in scope while Python code builds a program. Their values vary at run time, so
// `i == 0` has no truth value in Python. Comparisons of sizes have one: Python code may test whether a size is the
// constant 1, as broadcasting does.
#pragma once

#include <nanobind/nanobind.h>

#include "ir/expr.h"

namespace tilewright::python {

/// Whether, while a program is being built, the value of the expression depends on memory, or on a loop or axis around,
/// or on an index of a formula that is being evaluated.
bool varies(const Expr& e);

void bind_running_vars(nanobind::module_& m);

}  // namespace tilewright::python
