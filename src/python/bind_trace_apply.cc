// When programs count as the same, and using what was found for one on another.

#include "python/search_components.h"
#include "search/module_equality.h"
#include "search/renamed_trace.h"
#include "search/trace_apply.h"

namespace tilewright::python {
namespace {

Target target_of(nb::handle target) {
  if (nb::isinstance<nb::str>(target)) return unwrap(Target::parse(nb::cast<std::string>(target)));
  return nb::cast<Target>(target);
}

void apply_anchor_trace(const SchedulePtr& sch, const PyTrace& trace, const nb::object& target) {
  schedule::Schedule changed = taken(sch);
  unwrap_in(*sch, search::schedule_using_anchor_trace(changed, trace.trace, target_of(target)));
  sch->schedule = std::move(changed);
}

PyTrace renamed(const PyTrace& trace, const Ref<PrimFunc>& was, const Ref<PrimFunc>& now, const std::string& function) {
  return {search::renamed_trace(trace.trace, was, now, function), trace.owner, false, trace.own_numbers};
}

}  // namespace

void bind_trace_apply(nb::module_& m) {
  m.def("renamed_trace", &renamed, "trace"_a, "was"_a, "now"_a, "function"_a,
        "The trace of a function for an equal one, whose blocks have other names.\n\nArgs:\n"
        "    trace: of the one.\n    was: the one.\n    now: the other one.\n"
        "    function: its name in its module.");
  m.def("schedule_using_anchor_trace", &apply_anchor_trace, "sch"_a, "anchor_trace"_a, "target"_a,
        "Use the trace of a program for another one with the same heaviest block.\n\nArgs:\n"
        "    sch: a schedule of the other program.\n    anchor_trace: what was found for the one.\n"
        "    target: what the program is compiled for.",
        nb::sig("def schedule_using_anchor_trace(sch: Schedule, anchor_trace: Trace, target: Target | str) -> None"));
  m.def(
      "find_anchor_block", &search::find_anchor_block, "module"_a,
      "The block that most of the work is in: the only one with an init, or of several that with the most operations; "
      "None where none has one.");
  m.def(
      "module_hash",
      [](const Ref<Module>& module, const std::string& equality) {
        return search::module_hash(module, unwrap(search::parse_module_equality(equality))).hex();
      },
      "module"_a, "equality"_a,
      "A text that is the same for programs that count as the same.\n\nArgs:\n    module: the program.\n"
      "    equality: \"structural\", \"ignore-ndarray\" (constants by type and shape) or \"anchor-block\" (by the "
      "heaviest block alone).");
  m.def(
      "operator_hash", [](const Ref<Module>& module) { return search::operator_hash(module).hex(); }, nb::arg("module"),
      "A text that is the same for programs of one operator at different shapes.");
  m.def(
      "modules_equal",
      [](const Ref<Module>& a, const Ref<Module>& b, const std::string& equality) {
        return search::modules_equal(a, b, unwrap(search::parse_module_equality(equality)));
      },
      "a"_a, "b"_a, "equality"_a,
      "Whether two programs count as the same.\n\nArgs:\n    a: a program.\n    b: another one.\n"
      "    equality: as of module_hash().");
}

}  // namespace tilewright::python
