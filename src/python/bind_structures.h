// Structures of sparse tensors that come from outside.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::python {

void bind_structures(nanobind::module_& m);

}  // namespace tilewright::python
