// The table of tensor intrinsics.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "ir/tensor_intrin.h"
#include "python/module.h"
#include "python/node_caster.h"

namespace tilewright::python {
namespace {

Status register_python(std::string name, Ref<PrimFunc> desc, Ref<PrimFunc> impl, std::vector<std::string> features,
                       bool replace, bool compact) {
  return register_tensor_intrin({.name = std::move(name),
                                 .desc = std::move(desc),
                                 .impl = std::move(impl),
                                 .features = std::move(features),
                                 .compact = compact},
                                replace);
}

nb::object find_python(const std::string& name) {
  auto found = find_tensor_intrin(name);
  if (!found) return nb::none();
  return nb::make_tuple(found->desc, found->impl, found->features);
}

/// What the package knows is registered where it is first named: reading the scripts takes a moment.
void ask_python(std::string_view name) {
  nb::gil_scoped_acquire gil;
  try {
    nb::module_::import_("tilewright.tensor_intrin").attr("make_if_known")(nb::str(name.data(), name.size()));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("tilewright.tensor_intrin");
  }
}

}  // namespace

void bind_tensor_intrin(nb::module_& m) {
  m.def("register_tensor_intrin", &register_python, "name"_a, "desc"_a, "impl"_a, "features"_a, "replace"_a,
        "compact"_a);
  m.def("find_tensor_intrin", &find_python, "name"_a, "Description, implementation and features, or None.");
  m.def("tensor_intrin_names", &tensor_intrin_names);
  set_tensor_intrin_source(&ask_python);
}

}  // namespace tilewright::python
