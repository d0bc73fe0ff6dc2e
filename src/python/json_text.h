// Values of Python as JSON.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace tilewright::python {

/// What json.dumps makes of it; what it cannot write, or holds itself, is an ArgumentError of that code. `what` is what
/// the value stands for: "a trace".
std::string json_text(nanobind::handle value, const char* code, const std::string& what);

}  // namespace tilewright::python
