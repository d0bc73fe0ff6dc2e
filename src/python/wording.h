// In whose words Python asks for the text of programs and traces.
#pragma once

#include <nanobind/nanobind.h>

#include "script/printer.h"

namespace tilewright::python {

/// A tilewright.script.wording.Wording; None where texts are Tilewright's own.
nanobind::object present_wording();
/// The script of a node, by options that omit what the wording says.
std::string print_in_words(const NodeRef& node, script::PrintOptions options);

}  // namespace tilewright::python
