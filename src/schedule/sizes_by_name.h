// Resolves symbolic sizes in index maps of a trace, such as n in lambda i: n - 1 - i. A trace that was parsed, or
// recorded on another program, has its own variables for sizes; replay maps them to the program's sizes by name.
#pragma once

#include <vector>

#include "schedule/instruction.h"
#include "schedule/state.h"

namespace tilewright::schedule {

/// Returns the sizes that index maps may name: scalar parameters of the function, and sizes of its buffers.
std::vector<Ref<Var>> sizes_of(const State& state, uint32_t func);

/// Returns the instruction with the sizes of the function that it works on. Returns the error trace/size if the
/// function has no size of that name.
Result<Instruction> with_sizes_by_name(const State& state, Instruction instruction);

}  // namespace tilewright::schedule
