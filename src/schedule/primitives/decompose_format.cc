// Store a sparse buffer in another format: one iteration for each rule.
//
// Requires  P1 a function to rewrite, which has sparse axes
//           P2 a format of that name, which takes these parameters and has no more rules than `count`; iterations
//              access the buffer by their own variables
#include "schedule/primitives/decompose_format.h"

#include "ir/traverse.h"
#include "schedule/format_templates.h"
#include "schedule/primitive.h"
#include "sparse/lower_iterations.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const DecomposeFormat& decompose) {
  TW_TRY(func, function_meant(state, decompose.func_name, "decompose_format/P1", "rewrite",
                              "decompose_format(..., func_name=...)"));
  const Func& before = state.function_at(func);
  if (!sparse::is_sparse(before)) {
    return refuse("decompose_format/P1", "function '" + state.shown_name(func) + "' has no sparse axes", {},
                  "formats are chosen before iterations are lowered");
  }
  FormatRequest request{before.cast<PrimFunc>(), decompose.buffer, decompose.format, {}, decompose.count};
  for (const Factor& parameter : decompose.parameters) {
    if (const int64_t* number = std::get_if<int64_t>(&parameter)) {
      request.parameters.push_back(*number);
    } else if (const ExprRV* sampled = std::get_if<ExprRV>(&parameter)) {
      request.parameters.push_back(state.value(*sampled));
    } else {
      return refuse("decompose_format/P2", "a parameter of a format is not an integer", {},
                    "pass integers and sampled values");
    }
  }
  auto made = decompose_by_template(request);
  if (!made.ok()) return refuse("decompose_format/P2", made.error().message, {}, made.error().hint);
  Plan plan;
  plan.func = func;
  for (const std::string& name : made->iterations) {
    visit(made->func, [&](const Ref<SparseIteration>& iteration) {
      if (iteration->name_hint == name) plan.outputs.push_back(Handle::iteration(func, *iteration));
    });
  }
  if (plan.outputs.size() != made->iterations.size()) {
    return refuse("decompose_format/P2", "iterations of the program have the same name", {},
                  "give each iteration a name of its own");
  }
  plan.functions.emplace_back(state.function_name(func), made->func);
  plan.recorded = recorded_with(decompose, &DecomposeFormat::func_name, state.function_name(func));
  return plan;
}

}  // namespace tilewright::schedule
