// Steps around blocks of which nothing is known but what they declare: a call that gets pointers of buffers.
//
//   with T.block("load"):                                   nobody can say what the call does to the fragment; that it
//     vi, vj = T.axis.remap("SS", [i, j])                   fills what the block declares, once for each vi and vj, the
//     T.reads(A[vi * 16 : vi * 16 + 16, ...])               user says. A step that needs it is taken at that word, and
//     T.writes(B[vi * 16 : vi * 16 + 16, ...])              marked: `stated, not proved`.
//     T.tvm_load_matrix_sync(B.data, 16, 16, 16, ...)
//
// Only steps that move blocks and loops, or make copies, ask for that (kBelieves of their aggregates): one that
// rewrites what a block does has to see it.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// The plan of an instruction that was refused, if there is one once blocks are taken at their word, as few of them as
/// it needs.
std::optional<Plan> plan_by_declarations(const State& state, const Instruction& instruction);

}  // namespace tilewright::schedule
