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

void bind_ir(nanobind::module_& m);
/// After bind_ir.
void bind_node_methods();
void bind_arith(nanobind::module_& m);
void bind_call(nanobind::module_& m);
void bind_compile(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_machine(nanobind::module_& m);
void bind_script(nanobind::module_& m);
void bind_printer(nanobind::module_& m);
void bind_interpreter(nanobind::module_& m);
void bind_schedule(nanobind::module_& m);
void bind_measure(nanobind::module_& m);
void bind_search(nanobind::module_& m);
/// After bind_schedule: the components of a search.
void bind_search_components(nanobind::module_& m);
void bind_analysis(nanobind::module_& m);
void bind_tensor_intrin(nanobind::module_& m);
/// After all others.
void explain_wrong_arguments(nanobind::module_& m);

}  // namespace tilewright::python
