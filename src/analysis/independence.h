// Whether the iterations of a loop may run at the same time, and whether blocks below loops may see them in another
// order. Parallel iterations and threads may meet in an element that they update by atomic operations alone.
#pragma once

#include <optional>

#include "analysis/cover.h"
#include "target/thread_axis.h"

namespace tilewright::analysis {

enum class Conflict {
  kBareStatement,  ///< something outside of blocks, about which nothing is known
  kOtherBlock,     ///< a block whose instances depend on their order
  kReduction,      ///< the loop drives a reduction
  kWrite,          ///< two iterations may write the same element
  kRead,           ///< an iteration may read what another one writes
};
/// Missing condition for combining the partial results of iterations.
enum class Lacks {
  kNothing,
  kSpatialLoop,  ///< nobody puts parts together: the iterations of a parallel loop, and blocks of threads
  kOperation,    ///< an operation whose order does not matter
  kSingleSteps,  ///< steps that can be taken apart: a block inside or an intrinsic combines values
  kAllSteps,     ///< proof that the loop drives reduction axes alone, and executes each step once
};
struct Dependent {
  Conflict conflict;
  Obstacle obstacle;
  Lacks lacks = Lacks::kNothing;  ///< for Conflict::kReduction
};

/// Kind and thread axis of a loop: who runs its iterations.
struct Execution {
  ForKind kind = ForKind::kSerial;
  std::optional<ThreadAxis> axis = {};  ///< thread axis that the loop is bound to

  static Execution of(const For& loop);
  /// A copy of the buffer can be one per iteration, if lowering allocates it below the loop (allocation_locations).
  bool can_own(const Ref<Buffer>& buffer) const;
  /// Iterations may all store one value to one element: threads that fill their memory together.
  bool can_agree(const Ref<Buffer>& buffer, const Expr& extent) const;
  /// Steps of a commutative reduction may be spread over the iterations: the threads of a block, and the lanes of a
  /// vector, put them together.
  bool reduces() const { return kind == ForKind::kVectorized || (axis && axis->level == ThreadAxis::Level::kThread); }
};

/// Why two iterations of the loop might depend on one another; nothing if they are independent. With `about`, a block,
/// by way of a buffer that this block accesses: what is asked where nothing else has changed.
std::optional<Dependent> why_dependent(const Tree& tree, int loop, Execution execution, int about = Tree::kNone);

/// Whether the axes of the block are an injective function of those of these loops (a chain around it, outermost first)
/// that they use, for all values of other loops.
bool axes_are_injective(const Tree& tree, std::vector<int> loops, int block);

/// Why the blocks below the last of `loops` (a chain, outermost first) might see another result when the iterations of
/// these loops run in another order, each block being regular in the new order as well.
std::optional<Dependent> why_order_matters(const Tree& tree, const std::vector<int>& loops);

}  // namespace tilewright::analysis
