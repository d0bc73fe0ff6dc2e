// Give the variables of the iteration over sparse axes with a name.
//
// Requires  P1 a function to look in
//           P2 exactly one iteration of that name
#include "schedule/primitives/get_sp_iters.h"

#include "ir/traverse.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetSpIters& get) {
  std::optional<uint32_t> func = state.working_function();
  if (!get.func_name.empty()) {
    TW_TRY(named, state.function(get.func_name));
    func = named;
  }
  if (!func) {
    return refuse("get_sp_iters/P1", "the schedule does not know which function to look in: none is named 'main'", {},
                  "say which one is meant: get_sp_iters(name, func_name=...) or work_on(func_name)");
  }
  std::vector<Ref<SparseIteration>> found;
  std::string names;
  visit(state.function_at(*func), [&](const Ref<SparseIteration>& iteration) {
    names += (names.empty() ? "" : ", ") + iteration->name_hint;
    if (iteration->name_hint == get.name) found.push_back(iteration);
  });
  if (found.size() != 1) {
    return refuse("get_sp_iters/P2",
                  "'" + state.shown_name(*func) + "' has " + std::to_string(found.size()) +
                      " iterations over sparse axes with the name " + get.name,
                  {},
                  names.empty() ? "it has none at all, or they are lowered already" : "its iterations are: " + names);
  }
  Plan plan;
  plan.func = *func;
  for (const Ref<SpIterVar>& iter : found[0]->iter_vars) plan.outputs.push_back(Handle::loop(*func, iter->var));
  plan.recorded = GetSpIters{get.name, state.function_name(*func)};
  return plan;
}

}  // namespace tilewright::schedule
