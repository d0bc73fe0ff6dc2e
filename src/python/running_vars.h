// Variables that take several values while the program runs: those of loops and axes that are being built. Whether one
// equals a number is not known before, unlike of a size, which Python code asks for the rank of what it broadcasts.
#pragma once

#include <nanobind/nanobind.h>

#include "ir/expr.h"

namespace tilewright::python {

/// Whether, while a program is being built, the value of the expression depends on memory, or on a loop or axis around,
/// or on an index of a formula that is being evaluated.
bool varies(const Expr& e);

void bind_running_vars(nanobind::module_& m);

}  // namespace tilewright::python
