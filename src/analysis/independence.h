// Whether the iterations of a loop may run in parallel, and whether loops may be reordered. Parallel iterations and
// threads may only update the same element by atomic operations.
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
  kSpatialLoop,  ///< the execution cannot combine partial results: parallel loops, and loops over thread blocks
  kOperation,    ///< the operation depends on the order of its steps
  kSingleSteps,  ///< the block has no single steps: an inner block or a tensor intrinsic combines values
  kAllSteps,     ///< not proved: the loop drives reduction axes only, and executes each step once
};
struct Dependent {
  Conflict conflict;
  Obstacle obstacle;
  Lacks lacks = Lacks::kNothing;  ///< for Conflict::kReduction
};

/// How the iterations of a loop are executed: its kind and thread axis.
struct Execution {
  ForKind kind = ForKind::kSerial;
  std::optional<ThreadAxis> axis = {};  ///< thread axis that the loop is bound to

  static Execution of(const For& loop);
  /// Whether each iteration can have its own copy of the buffer, if lowering allocates it below the loop
  /// (allocation_locations).
  bool can_own(const Ref<Buffer>& buffer) const;
  /// Whether several iterations may store the same value to one element, as threads do that fill shared memory
  /// together.
  bool can_agree(const Ref<Buffer>& buffer, const Expr& extent) const;
  /// Whether iterations may compute partial results of a commutative reduction: threads of a block and vector lanes
  /// can, since lowering combines their results.
  bool reduces() const { return kind == ForKind::kVectorized || (axis && axis->level == ThreadAxis::Level::kThread); }
};

/// Returns why two iterations of the loop might depend on one another; nothing if they are independent. With `about`, a
/// block, only dependences through buffers that this block accesses are checked: enough if only that block has changed.
std::optional<Dependent> why_dependent(const Tree& tree, int loop, Execution execution, int about = Tree::kNone);

/// Whether the axes of the block are an injective function of those of `loops` that they use, for all values of the
/// other loops. `loops` are nested around the block, outermost first.
bool axes_are_injective(const Tree& tree, std::vector<int> loops, int block);

/// Returns why a reordering of `loops` (nested, outermost first) might change results of the blocks below them. Nothing
/// if the order does not matter. Assumes that reductions are regular in the new order, too (why_irregular_reduction()).
std::optional<Dependent> why_order_matters(const Tree& tree, const std::vector<int>& loops);

}  // namespace tilewright::analysis
