// Converts arguments of measured kernels, and user-defined checks of their results, from Python to the measuring
// pipeline.
#pragma once

#include <nanobind/nanobind.h>

#include "python/module.h"
#include "search/measure/arguments.h"

namespace tilewright::python {

std::span<const std::byte> bytes_of(const nb::bytes& bytes);
/// Creates the arguments from tuples (name, dtype, shape, role, initial bytes), one per parameter.
Result<std::shared_ptr<search::Arguments>> make_arguments(const nb::object& list, int64_t reduction_length);
/// Calls `judge` with the outputs, as bytes by name. It returns a text that says how many elements it compared.
Result<std::string> judge_in_python(const nb::callable& judge, search::Arguments& arguments);

}  // namespace tilewright::python
