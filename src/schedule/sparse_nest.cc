#include "schedule/sparse_nest.h"

#include <algorithm>

#include "ir/traverse.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<SparseNest> find_nest(const State& state, const std::vector<LoopRV>& variables, const char* code) {
  if (variables.empty())
    return refuse(code, "no variable of an iteration is named", {}, "pass what get_sp_iters gives");
  std::optional<SparseNest> nest;
  for (const LoopRV& rv : variables) {
    const Handle& handle = state.handle(rv.index);
    const auto& variable = std::get<Ref<Var>>(handle.target);
    SparseNest found{handle.func, {}, {}};
    size_t at = 0;
    visit(state.function_at(handle.func), [&](const Ref<SparseIteration>& iteration) {
      for (size_t i = 0; i < iteration->iter_vars.size(); ++i) {
        if (iteration->iter_vars[i]->var != variable) continue;
        found.iteration = iteration;
        at = i;
      }
    });
    if (!found.iteration.defined()) {
      return refuse(code, "'" + variable->name_hint + "' is no variable of an iteration over sparse axes", {variable},
                    "pass what get_sp_iters gives, before the iteration is lowered");
    }
    if (!nest) nest = found;
    if (nest->func != handle.func || nest->iteration != found.iteration) {
      return refuse(code, "'" + variable->name_hint + "' belongs to another iteration", {nest->iteration},
                    "pass variables of one iteration");
    }
    if (std::find(nest->at.begin(), nest->at.end(), at) != nest->at.end()) {
      return refuse(code, "'" + variable->name_hint + "' is named twice", {nest->iteration}, "pass each variable once");
    }
    nest->at.push_back(at);
  }
  return std::move(*nest);
}

Plan give_nest(const State& state, const SparseNest& nest, std::vector<Ref<SpIterVar>> variables) {
  SparseIteration changed = *nest.iteration;
  changed.iter_vars = std::move(variables);
  const Ref<SparseIteration> replacement = make<SparseIteration>(std::move(changed), nest.iteration.span());
  Plan plan;
  plan.func = nest.func;
  plan.functions.emplace_back(
      state.function_name(nest.func),
      rewrite(state.function_at(nest.func), [&](const Ref<SparseIteration>& iteration, Rewriter& walk) -> Stmt {
        return iteration == nest.iteration ? Stmt(replacement) : Stmt(walk.descend(iteration));
      }));
  return plan;
}

}  // namespace tilewright::schedule
