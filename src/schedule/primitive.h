// Builds the plans and error messages of schedule primitives. Each file of primitives/ defines plan(), which
// instructions.h declares. plan() returns the changes that an instruction makes, or why it is refused; it modifies
// nothing.
#pragma once

#include <initializer_list>

#include "analysis/brief.h"
#include "analysis/cover.h"
#include "schedule/state.h"

namespace tilewright::schedule {

// Refusals are rare, so this code is kept out of line.

/// Returns a ScheduleError about some nodes, which are underlined where the message is shown with the program.
[[gnu::cold]] Diagnostic refuse(std::string code, std::string message, std::initializer_list<NodeRef> nodes,
                                std::string hint);

/// A refusal about one loop or block.
[[gnu::cold]] Diagnostic refuse(std::string code, std::string message, const Place& place, std::string hint);

/// A refusal because of what an analysis found.
[[gnu::cold]] Diagnostic refuse(std::string code, const analysis::Obstacle& obstacle, std::string hint);

/// "loop 'i' (extent 100)", "block 'C'".
[[gnu::cold]] std::string describe(const Place& place);
[[gnu::cold]] std::string describe_loop(const For& loop);
[[gnu::cold]] std::string describe_block(const Block& block);
/// "loop 'i' (extent 100) around block 'C'": loops of several nests may be named alike.
[[gnu::cold]] std::string describe_in_nest(const Place& loop);
using analysis::brief;

/// Requires that the loop is serial, without annotation and thread axis.
Status require_plain_loop(const Place& place, const char* code);
/// Requires that the loop starts at 0.
Status require_zero_start(const Place& place, const char* code);
/// Requires that nothing that runs in `outer` (the loop, or one around it) changes memory that the bounds of the loop
/// read.
Status require_kept_bounds(const Place& outer, const Place& place, const char* code);
/// Requires that the text names a memory scope for a copy of a buffer of the block.
Status require_memory_scope(const std::string& scope, const Place& block, const char* code);

/// Returns the instruction to record, in which one field has its resolved value.
template <class I, class Field>
I recorded_with(I instruction, Field I::* field, std::type_identity_t<Field> value) {
  instruction.*field = std::move(value);
  return instruction;
}

/// Handles to the blocks at these positions.
Plan give_blocks(uint32_t func, const Tree& tree, const std::vector<int>& positions);
/// Returns the function with that name; without a name, the function being worked on. Refuses with `code` if there is
/// none. `purpose` and `call` are for the message: "look in", "get_block(name, func_name=...)".
Result<uint32_t> function_meant(const State& state, const std::string& name, const char* code, const char* purpose,
                                const char* call);
/// A new root for the function, and handles to new loops.
Plan give_loops(uint32_t func, Ref<Block> root, const std::vector<Ref<Var>>& loops);

}  // namespace tilewright::schedule
