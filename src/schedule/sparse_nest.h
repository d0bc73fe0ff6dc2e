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
/// The function with other variables of the iteration.
Plan give_nest(const State& state, const SparseNest& nest, std::vector<Ref<SpIterVar>> variables);

}  // namespace tilewright::schedule
