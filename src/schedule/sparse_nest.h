// Iterations over sparse axes, as the steps see them that change one before it is lowered. A handle to a variable of an
// iteration is a handle to a loop: the variable stays the same whatever happens to its iteration.
#pragma once

#include <vector>

#include "schedule/state.h"

namespace tilewright::schedule {

/// A sparse iteration, and the positions of some of its variables.
struct SparseNest {
  uint32_t func;
  Ref<SparseIteration> iteration;
  std::vector<size_t> at;  ///< positions of the requested variables in the iteration
};

/// Finds the iteration that has all of these variables. Refuses with `code` if there is none, or a variable is
/// repeated.
Result<SparseNest> find_nest(const State& state, const std::vector<LoopRV>& variables, const char* code);
/// Whether the handle is one of an iteration, which may be gone.
bool is_iteration(const State& state, BlockRV rv);
/// Finds the iteration of a handle, with no requested variables. Refuses with `code` if it is gone.
Result<SparseNest> find_iteration(const State& state, BlockRV rv, const char* code);
/// The function with another iteration in its place.
Plan give_iteration(const State& state, const SparseNest& nest, SparseIteration changed);
/// The function with other variables of the iteration.
Plan give_nest(const State& state, const SparseNest& nest, std::vector<Ref<SpIterVar>> variables);

}  // namespace tilewright::schedule
