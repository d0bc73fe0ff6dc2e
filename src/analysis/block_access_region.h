// Computes the regions of buffers that a block reads and writes, for the buffers that it does not allocate.
//
//   for ax in range(4): B[vi, vj * 4 + ax] = A[vi + 1]   =>   reads A[vi + 1], writes B[vi, vj * 4 : vj * 4 + 4]
//
// The region of a buffer covers all accesses to it: loop variables inside the block range over their whole domain, the
// block's own axes and everything defined outside stay symbolic. A nested block counts by its declared regions, not by
// its body; accesses through a match_buffer count for its source. A dimension with unknown bounds is covered whole.
// Buffers that the block allocates do not appear. A block with an init does not read the elements that it writes.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

struct BlockAccess {
  std::vector<Ref<BufferRegion>> reads, writes;  ///< one a buffer, in the order of the first access
  std::vector<Ref<Var>> opaque;                  ///< pointers used other than by loads and stores, each once
};

BlockAccess block_access_region(const Ref<Block>& block);
/// Uses the general analysis, which agrees with the shorter one for common blocks.
BlockAccess found_access_region(const Ref<Block>& block);

/// The region, with the whole extent of dimensions whose bounds load what `writes` change: inside of a block with these
/// writes, such bounds are not those at its start.
Ref<BufferRegion> known_at_start(const Ref<BufferRegion>& region, const std::vector<Ref<BufferRegion>>& writes);

/// The block, or one inside, uses a pointer to the buffer, or makes a view of it.
bool reaches_by_pointer(const Ref<Block>& block, const Ref<Buffer>& buffer);

/// Returns the regions that the init of a block writes. These are the declared ones, unless they mention variables
/// other than spatial axes (reduction axes, or loops around them, which the init is not in); then those of its own
/// accesses.
std::vector<Ref<BufferRegion>> init_writes(const Block& block);

}  // namespace tilewright::analysis
