// Whether the iterations of a loop may run at the same time, and whether blocks below loops may see them in another
// order.
#pragma once

#include <string_view>

#include "analysis/cover.h"

namespace tilewright::analysis {

enum class Conflict {
  kBareStatement,  ///< something outside of blocks, about which nothing is known
  kOtherBlock,     ///< a block whose instances depend on their order
  kReduction,      ///< the loop drives a reduction
  kWrite,          ///< two iterations may write the same element
  kRead,           ///< an iteration may read what another one writes
};
struct Dependent {
  Conflict conflict;
  Obstacle obstacle;
};

/// What those who run the iterations can do.
struct Execution {
  /// A buffer that lowering allocates below the loop (buffer_homes) counts as one per iteration.
  bool private_buffers = false;
  /// Steps of a commutative reduction may be spread over the iterations: the threads of a block, and the lanes of a
  /// vector, put them together.
  bool reduces = false;
  /// Also of one whose result holds a value before: lanes add to it.
  bool updates = false;
};
/// Of a loop of this kind, bound to the thread axis if it is bound.
Execution execution_of(ForKind kind, std::string_view thread_axis);

/// Why two iterations of the loop might depend on one another; nothing if they are independent.
std::optional<Dependent> why_dependent(const Tree& tree, int loop, Execution execution);

/// Why the blocks below the last of `loops` (a chain, outermost first) might see another result when the iterations of
/// these loops run in another order, each block being regular in the new order as well.
std::optional<Dependent> why_order_matters(const Tree& tree, const std::vector<int>& loops);

}  // namespace tilewright::analysis
