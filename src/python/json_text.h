// Values of Python as JSON.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace tilewright::python {

/// Returns json.dumps(value). Raises an ArgumentError with this code for values that it cannot write, or that contain
/// themselves. `what`: the noun for messages, such as "a trace".
std::string json_text(nanobind::handle value, const char* code, const std::string& what);

}  // namespace tilewright::python
