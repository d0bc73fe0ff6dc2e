// Iterations over sparse axes, as the steps see them that change one before it is lowered. A handle to a variable of an
// iteration is a handle to a loop: the variable stays the same whatever happens to its iteration.
#pragma once

#include <vector>

#include "schedule/state.h"

namespace tilewright::schedule {

/// Where variables of one iteration stand.
struct SparseNest {
  uint32_t func;
  Ref<SparseIteration> iteration;
  std::vector<size_t> at;  ///< the places of the variables that were asked for
};

/// The iteration that has all of these variables, each of which is named once; refused under this code otherwise.
Result<SparseNest> find_nest(const State& state, const std::vector<LoopRV>& variables, const char* code);
/// Whether the handle is one of an iteration, which may be gone.
bool is_iteration(const State& state, BlockRV rv);
/// The iteration of a handle, without variables that were asked for; refused under this code otherwise.
Result<SparseNest> find_iteration(const State& state, BlockRV rv, const char* code);
/// The function with another iteration in its place.
Plan give_iteration(const State& state, const SparseNest& nest, SparseIteration changed);
/// The function with other variables of the iteration.
Plan give_nest(const State& state, const SparseNest& nest, std::vector<Ref<SpIterVar>> variables);

}  // namespace tilewright::schedule
