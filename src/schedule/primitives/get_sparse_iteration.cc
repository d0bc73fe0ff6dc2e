// Find the iteration over sparse axes with a name, anywhere in a function.
//
// Requires  P1 a function to look in
//           P2 exactly one iteration of that name, which has variables
#include "schedule/primitives/get_sparse_iteration.h"

#include "ir/traverse.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {
namespace {

/// Whether lowering makes a block of that name: "spmm0", "spmm1", "spmm_init" of the iteration "spmm".
bool is_block_of_one(const Func& func, const std::string& name) {
  return any_node(func, [&](const Ref<SparseIteration>& iteration) {
    if (!name.starts_with(iteration->name_hint)) return false;
    const std::string rest = name.substr(iteration->name_hint.size());
    return rest == "_init" || (!rest.empty() && rest.find_first_not_of("0123456789") == std::string::npos);
  });
}

}  // namespace

Result<Plan> plan(const State& state, const GetSparseIteration& get) {
  TW_TRY(func, function_meant(state, get.func_name, "get_sparse_iteration/P1", "look in",
                              "get_sparse_iteration(name, func_name=...)"));
  std::vector<Ref<SparseIteration>> iterations;
  std::string names;
  visit(state.function_at(func), [&](const Ref<SparseIteration>& iteration) {
    names += (names.empty() ? "" : ", ") + iteration->name_hint;
    if (iteration->name_hint == get.name) iterations.push_back(iteration);
  });
  if (iterations.empty() && is_block_of_one(state.function_at(func), get.name)) {
    return refuse("get_sparse_iteration/P2",
                  "'" + get.name + "' is a block of an iteration over sparse axes that is not lowered yet", {},
                  "make blocks and loops of the iterations first: sch.lower_sparse_iter()");
  }
  if (iterations.size() != 1) {
    return refuse("get_sparse_iteration/P2",
                  "'" + state.shown_name(func) + "' has " + std::to_string(iterations.size()) +
                      " iterations over sparse axes with the name " + get.name,
                  {},
                  names.empty() ? "it has none at all, or they are lowered already" : "its iterations are: " + names);
  }
  if (iterations[0]->iter_vars.empty()) {
    return refuse("get_sparse_iteration/P2", "the iteration '" + get.name + "' has no variables", {iterations[0]},
                  "its body runs once: no step changes it before it is lowered");
  }
  Plan plan;
  plan.func = func;
  plan.outputs.push_back(Handle::iteration(func, *iterations[0]));
  plan.recorded = GetSparseIteration{get.name, state.function_name(func)};
  return plan;
}

}  // namespace tilewright::schedule
