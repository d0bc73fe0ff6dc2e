// Loops whose iterations run on the threads of a GPU, and the memory that these threads share.
//
//   for tx in T.thread_binding(32, thread="threadIdx.x"):       all threads of the team are here at the same time;
//     for k in range(4):                                        between statements that share data they wait for one
//       for i in T.thread_binding(32, thread="threadIdx.x"):    another. The inner loop is bound again to the axis: it
//         with T.block("S"): S[k, i] = ...                      means the same threads, and runs iteration i on thread
//       with T.block("C"): ... = S[k, 31 - tx]                  i only
//
// After a statement, a buffer that the threads of a team share (target/memory_scope.h: it joins them) contains what all
// of them have written. The region that a block writes to it is therefore the union over all iterations of the
// enclosing loops that are bound to these threads.
#pragma once

#include <functional>
#include <optional>

#include "analysis/cover.h"
#include "target/thread_axis.h"

namespace tilewright::analysis {

/// The axis that the loop is bound to, if it is.
std::optional<ThreadAxis> thread_axis(const For& loop);
/// Whether different threads may execute the iterations of a loop of this kind at the same time.
inline bool runs_on_threads(ForKind kind) { return kind == ForKind::kParallel || kind == ForKind::kThreadBinding; }
/// Whether the threads that run the loop share the memory of the buffer.
bool joins_threads(const For& loop, const Ref<Buffer>& buffer);

/// Returns the loops around a position in its scope, itself included, outermost first, whose threads share the memory
/// of the buffer, and which all reach the position equally often and at the same time.
std::vector<int> joined_loops(const Tree& tree, int at, const Ref<Buffer>& buffer);

/// A loop over thread blocks inside a loop over the threads of a team.
struct BlocksInThreads {
  int threads, blocks;
};
/// The first such pair of the loops, outermost first; loops over threads count where `is_team` says so.
std::optional<BlocksInThreads> blocks_in_threads(const Tree& tree, const std::vector<int>& loops,
                                                 const std::function<bool(const For&)>& is_team);

/// The loop around `loop` that is bound to the same axis; kNone if there is none.
int same_threads(const Tree& tree, int loop);

/// Returns why no block may stand around the statement: below it is a loop that is bound again to an axis of a loop
/// around it, and the same threads run both only within one block.
std::optional<Obstacle> why_no_block_around(const Tree& tree, int at);

/// Returns why the loop, bound again to an axis, would not do the same as when each thread ran all of it: another
/// extent than the loop around, blocks that differ between the threads, parts of a reduction, results that others do
/// not see. Nothing for a loop that is not bound again.
std::optional<Obstacle> why_not_same_threads(const Tree& tree, int loop);
/// The obstacle for any loop of the kernel that the statement is part of, or is; and loops bound to one axis have one
/// extent, be they inside of one another or not.
std::optional<Obstacle> why_threads_differ(const Tree& tree, int at);

}  // namespace tilewright::analysis
