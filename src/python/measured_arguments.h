// Arguments of measured kernels and the check of the first results: from Python to the measuring pipeline.
#pragma once

#include <nanobind/nanobind.h>

#include "python/module.h"
#include "search/measure/arguments.h"

namespace tilewright::python {

std::span<const std::byte> bytes_of(const nb::bytes& bytes);
/// (name, dtype, shape, role, initial bytes) for each parameter.
Result<std::shared_ptr<search::Arguments>> make_arguments(const nb::object& list, int64_t reduction_length);
/// Gives it the outputs, by name, as bytes; it answers how much of them it compared.
Result<std::string> judge_in_python(const nb::callable& judge, search::Arguments& arguments);

}  // namespace tilewright::python
