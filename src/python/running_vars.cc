#include "python/running_vars.h"

#include <nanobind/stl/vector.h>

#include <vector>

#include "ir/traverse.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/ranges.h"

namespace tilewright::python {
namespace {

/// Indices of the formulas that this thread evaluates, the innermost formula last.
thread_local std::vector<std::vector<Ref<Var>>> formulas;

bool is_running(const Ref<Var>& v) {
  if (any_of(formulas, [&](const std::vector<Ref<Var>>& indices) { return is_contained(indices, v); })) return true;
  const script::IRBuilder* builder = script::IRBuilder::current();
  return builder && any_of(builder->frames(), [&](const script::FramePtr& frame) {
           if (const auto* block = dynamic_cast<const script::BlockFrame*>(frame.get()))
             return any_of(block->iter_vars, [&](const Ref<IterVar>& axis) { return axis->var == v; });
           const auto* loops = dynamic_cast<const script::ForFrame*>(frame.get());
           return loops && any_of(loops->loops, [&](const script::ForFrame::Loop& loop) { return loop.var == v; });
         });
}

}  // namespace

bool varies(const Expr& e) {
  // In a finished program, as schedules inspect it, comparisons are structural.
  if (formulas.empty() && !script::IRBuilder::current()) return false;
  return any_node(e, [](const Ref<Var>& v) { return is_running(v); }, [](const Ref<BufferLoad>&) { return true; });
}

void bind_running_vars(nb::module_& m) {
  m.def(
      "enter_formula", [](std::vector<Ref<Var>> indices) { formulas.push_back(std::move(indices)); }, "indices"_a,
      "Until leave_formula(), comparisons of these indices have no truth value.");
  m.def(
      "leave_formula",
      [] {
        if (!formulas.empty()) formulas.pop_back();
      },
      "Leave what enter_formula() has entered.");
}

}  // namespace tilewright::python
