// Plans schedule steps on blocks that cannot be analyzed because they call functions with pointers to buffers. Such a
// step assumes that the declared regions of the block are correct, and its trace records that: `stated, not proved`.
//
//   with T.block("load"):                                   the accesses of the call are unknown. The block declares
//     vi, vj = T.axis.remap("SS", [i, j])                   that it writes these 16 x 16 elements for each vi and vj.
//     T.reads(A[vi * 16 : vi * 16 + 16, ...])
//     T.writes(B[vi * 16 : vi * 16 + 16, ...])
//     T.tvm_load_matrix_sync(B.data, 16, 16, 16, ...)
//
// Only primitives that move blocks and loops, or insert copies, may assume this (kMayAssumeDeclarations). A primitive
// that rewrites the computation of a block must be able to analyze it.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// Plans an instruction that was refused again, assuming the declarations of as few blocks as it needs. Returns nothing
/// if it is refused even with all of them.
std::optional<Plan> plan_by_declarations(const State& state, const Instruction& instruction);

}  // namespace tilewright::schedule
