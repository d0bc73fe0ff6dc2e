// Functions of indices may name sizes of the program: lambda i: n - 1 - i. A trace that was read, or recorded on
// another program, has variables of its own for them; replay finds the sizes again by their names.
#pragma once

#include <vector>

#include "schedule/instruction.h"
#include "schedule/state.h"

namespace tilewright::schedule {

/// The sizes that functions of indices may name: scalar parameters of the function, and sizes of its buffers.
std::vector<Ref<Var>> sizes_of(const State& state, uint32_t func);

/// The instruction with sizes of the function that it works on. ScheduleError "trace/size" where it names one that the
/// function does not have.
Result<Instruction> with_sizes_by_name(const State& state, Instruction instruction);

}  // namespace tilewright::schedule
