// The dialect in which programs and traces print: Tilewright's own, or TVM's spelling (tilewright.script.wording).
#pragma once

#include <nanobind/nanobind.h>

#include "script/printer.h"

namespace tilewright::python {

/// Returns the current tilewright.script.wording.Wording; None for Tilewright's own spelling.
nanobind::object present_wording();
/// Prints a node. If the options name no package to import, that of the current wording is used.
std::string print_in_words(const NodeRef& node, script::PrintOptions options);

}  // namespace tilewright::python
