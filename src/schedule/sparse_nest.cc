#include "schedule/sparse_nest.h"

#include "ir/traverse.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The iteration that has the variable, and its number among those.
SparseNest find_variable(const State& state, uint32_t func, const Ref<Var>& variable) {
  SparseNest found{func, {}, {}};
  visit(state.function_at(func), [&](const Ref<SparseIteration>& iteration) {
    for (size_t i : indices_of(iteration->iter_vars)) {
      if (iteration->iter_vars[i]->var != variable) continue;
      found.iteration = iteration;
      found.at = {i};
    }
  });
  return found;
}

const Handle::BlockId& row_of(const State& state, BlockRV rv) {
  return std::get<Handle::BlockId>(state.handle(rv.index).target);
}

}  // namespace

bool is_iteration(const State& state, BlockRV rv) { return row_of(state, rv).variable.defined(); }

Result<SparseNest> find_iteration(const State& state, BlockRV rv, const char* code) {
  const Handle::BlockId& row = row_of(state, rv);
  if (!row.variable.defined()) {
    return refuse(code, "block '" + row.name + "' is not an iteration over sparse axes", {},
                  "pass what get_sparse_iteration gives");
  }
  SparseNest found = find_variable(state, state.handle(rv.index).func, row.variable);
  if (!found.iteration.defined()) {
    return refuse(code, "the iteration '" + row.name + "' is no longer in the program", {},
                  "a step since has lowered it, or has divided it by formats");
  }
  found.at.clear();
  return found;
}

Result<SparseNest> find_nest(const State& state, const std::vector<LoopRV>& variables, const char* code) {
  if (variables.empty())
    return refuse(code, "no variable of an iteration is named", {}, "pass what get_sp_iters gives");
  std::optional<SparseNest> nest;
  for (const LoopRV& rv : variables) {
    const Handle& handle = state.handle(rv.index);
    const auto& variable = std::get<Ref<Var>>(handle.target);
    const SparseNest location = find_variable(state, handle.func, variable);
    if (!location.iteration.defined()) {
      return refuse(code, "'" + variable->name_hint + "' is not a variable of an iteration over sparse axes",
                    {variable}, "pass what get_sp_iters gives, before the iteration is lowered");
    }
    if (!nest) nest = SparseNest{location.func, location.iteration, {}};
    if (nest->func != handle.func || nest->iteration != location.iteration) {
      return refuse(code, "'" + variable->name_hint + "' belongs to another iteration", {nest->iteration},
                    "pass variables of one iteration");
    }
    if (is_contained(nest->at, location.at[0])) {
      return refuse(code, "'" + variable->name_hint + "' is named twice", {nest->iteration}, "pass each variable once");
    }
    nest->at.push_back(location.at[0]);
  }
  return std::move(*nest);
}

Plan give_iteration(const State& state, const SparseNest& nest, SparseIteration changed) {
  const Ref<SparseIteration> replacement = make(std::move(changed), nest.iteration.span());
  Plan plan;
  plan.func = nest.func;
  plan.functions.emplace_back(
      state.function_name(nest.func),
      rewrite(state.function_at(nest.func), [&](const Ref<SparseIteration>& iteration, Rewriter& walk) -> Stmt {
        return iteration == nest.iteration ? Stmt(replacement) : Stmt(walk.descend(iteration));
      }));
  return plan;
}

Plan give_nest(const State& state, const SparseNest& nest, std::vector<Ref<SpIterVar>> variables) {
  SparseIteration changed = *nest.iteration;
  changed.iter_vars = std::move(variables);
  return give_iteration(state, nest, std::move(changed));
}

}  // namespace tilewright::schedule
