// The parts of the extension module: one function a file, called in this order by module.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

void bind_ir(nanobind::module_& m);
void bind_compile(nanobind::module_& m);
void bind_script(nanobind::module_& m);
void bind_printer(nanobind::module_& m);

}  // namespace tilewright::python
