#include "python/wording.h"

#include "python/module.h"
#include "python/node_caster.h"
#include "python/process_exit.h"

namespace tilewright::python {

nb::object present_wording() { return nb::module_::import_("tilewright.script.wording").attr("present")(); }

std::string print_in_words(const NodeRef& node, script::PrintOptions options) {
  if (auto invalid = script::find_invalid(options)) throw Exception(std::move(*invalid));
  if (options.package.empty()) {
    nb::object wording = present_wording();
    if (!wording.is_none()) options.package = nb::cast<std::string>(wording.attr("package"));
  }
  raise_if_thread_ends();
  GilReleased unlocked;
  return script::print(node, options);
}

}  // namespace tilewright::python
