// The parts of the extension module: one function a file, called in this order by module.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {
struct Diagnostic;
}

namespace tilewright::python {

namespace nb = nanobind;
/// "name"_a is an argument: nb::arg("name").
using nanobind::literals::operator""_a;

/// Sets the Python error for a diagnostic: a class of tilewright.errors with code, message, hint and span.
void set_python_error(const Diagnostic& diagnostic);

/// Adds a part to the module.
using Bind = void(nb::module_& m);
Bind bind_ir;
Bind bind_node_methods;  // called by bind_ir
Bind bind_arith;
Bind bind_process_exit;
Bind bind_structures;
Bind bind_call;
Bind bind_compile;
Bind bind_device;
Bind bind_machine;
Bind bind_script;
Bind bind_printer;
Bind bind_interpreter;
Bind bind_schedule;
Bind bind_measure;
Bind bind_search;
/// After bind_schedule: the components of a search.
Bind bind_search_components;
Bind bind_analysis;
Bind bind_tensor_intrin;
/// After all others.
Bind explain_wrong_arguments;

}  // namespace tilewright::python
