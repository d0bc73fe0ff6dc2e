// What a block reads and writes, as regions of the buffers it does not own.
//
//   for ax in range(4): B[vi, vj * 4 + ax] = A[vi + 1]   =>   reads A[vi + 1], writes B[vi, vj * 4 : vj * 4 + 4]
//
// The region of a buffer covers all accesses to it: loop variables inside the block range over their whole domain, the
// block's own axes and everything defined outside stay symbolic. Of a block inside, its declared regions count, not its
// body; accesses through a match_buffer count for its source. A dimension about which nothing can be said is covered
// whole. Buffers that the block allocates do not appear, and a block with an init does not read
// what it writes: only elements of that buffer which it leaves alone.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

struct BlockAccess {
  std::vector<Ref<BufferRegion>> reads, writes;  ///< one a buffer, in the order of the first access
  std::vector<Ref<Var>> opaque;                  ///< pointers used other than by loads and stores, each once
};

BlockAccess block_access_region(const Ref<Block>& block);
/// By the analysis for all blocks alone, which agrees with the shorter one for usual blocks.
BlockAccess found_access_region(const Ref<Block>& block);

/// The region, with the whole extent of dimensions whose bounds load what `writes` change: inside of a block with these
/// writes, such bounds are not those at its start.
Ref<BufferRegion> known_at_start(const Ref<BufferRegion>& region, const std::vector<Ref<BufferRegion>>& writes);

/// The block, or one inside, uses a pointer to the buffer, or makes a view of it.
bool reaches_by_pointer(const Ref<Block>& block, const Ref<Buffer>& buffer);

/// What the init of a block writes: the regions that the block declares, but where these speak of more than spatial
/// axes (of reduction axes, or of loops around them, which the init leaves), those of its own accesses.
std::vector<Ref<BufferRegion>> init_writes(const Block& block);

}  // namespace tilewright::analysis
