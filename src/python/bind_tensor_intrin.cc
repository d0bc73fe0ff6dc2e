// The table of tensor intrinsics.

#include "ir/processor_instructions.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "support/ranges.h"

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

/// Registers the package's intrinsics at the first lookup of a name: parsing their scripts takes time.
void ask_python(std::string_view name) {
  nb::gil_scoped_acquire gil;
  try {
    nb::module_::import_("tilewright.tensor_intrin").attr("make_if_known")(nb::str(name.data(), name.size()));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("tilewright.tensor_intrin");
  }
}

std::vector<std::string> instruction_features(const Ref<PrimFunc>& func) {
  std::vector<std::string> features;
  visit(func, [&](const Ref<Call>& call, Visitor& v) {
    v.descend(call);
    const ProcessorInstruction* instruction = instruction_of(*call);
    if (!instruction) return;
    for (std::string& feature : instruction->first_features()) {
      if (!is_contained(features, feature)) features.push_back(feature);
    }
  });
  return features;
}

std::optional<std::string_view> dot_instruction_for(DataType left, DataType right, DataType sums, int lanes, bool tiles,
                                                    const Target* target) {
  const auto form = tiles ? ProcessorInstruction::kTileDot : ProcessorInstruction::kDot;
  const ProcessorInstruction* found = dot_instruction(form, {left, right, sums}, lanes, target);
  return found ? std::optional(found->name) : std::nullopt;
}

}  // namespace

void bind_tensor_intrin(nb::module_& m) {
  m.def("register_tensor_intrin", &register_python, "name"_a, "desc"_a, "impl"_a, "features"_a, "replace"_a,
        "compact"_a);
  m.def("find_tensor_intrin", &find_python, "name"_a, "Description, implementation and features, or None.");
  m.def("tensor_intrin_names", &tensor_intrin_names);
  m.def("instruction_features", &instruction_features, "func"_a,
        "Features that a target needs for the processor instructions which a function calls.");
  m.def(
      "dot_instruction", &dot_instruction_for, "left"_a, "right"_a, "sums"_a, nb::kw_only(), "lanes"_a = 16,
      "tiles"_a = false, "target"_a = nb::none(),
      "The widest instruction that adds groups of products of these types to so many sums or to a part of them, of any "
      "processor or of a target, or None.");
  set_tensor_intrin_source(&ask_python);
}

}  // namespace tilewright::python
