// Where the buffers of blocks are allocated. Lowering and the reference interpreter share this decision.
//
//   t = T.alloc_buffer((66,))                 location of t: the loop i. No value outlives an iteration of i, so each
//   for i in T.parallel(8):                   iteration may have a buffer of its own. What is more, the iterations of
//     for j in range(10): t[i * 8 + j] = ..   a parallel loop must: neighbors copy overlapping parts, at the same time.
//     for j in range(8): ... = t[..]
//
// Where the scope of the buffer gives each iteration of a loop bound to a thread axis a copy of its own, the location
// is inside that loop, unless a reduction into the buffer runs over a loop around it. Otherwise a location is never
// inside a loop that carries values in the buffer:
//   - a vectorized one, whose iterations are lanes;
//   - one bound to a thread axis, for a buffer in main memory, which all threads and blocks share;
//   - one that drives a reduction of a block which writes the buffer;
//   - one whose iterations read what they have not provably written. Of parallel and thread-bound loops that is asked
//     only where a serial loop runs around them: else no other execution is there to leave values, and what flows
//     between their own iterations has no order. The interpreter reports that.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

struct AllocationLocation {
  Ref<Buffer> buffer;
  NodeRef location;  ///< a For, in whose body the buffer is allocated, or a Block
  Ref<For> shared;   ///< the innermost parallel or thread-bound loop between allocating block and location; may be null
};

/// Whether each iteration of the loop would have a buffer of its own if they ran at the same time.
bool is_private_to(const Tree& tree, int loop, const Ref<Buffer>& buffer);

/// The locations of all buffers that are accessed, in the order of their declarations.
std::vector<AllocationLocation> allocation_locations(const Ref<PrimFunc>& func);
std::vector<AllocationLocation> allocation_locations(const Ref<Block>& root);

/// Whether the location is inside the loop.
bool is_allocated_below(const Tree& tree, int loop, const NodeRef& location);

/// The function with its buffers allocated at these locations, without buffers that are never accessed.
Ref<PrimFunc> with_planned_allocations(const Ref<PrimFunc>& func);

/// The module with buffers allocated inside of the parallel and thread-bound loops whose iterations each own one, and
/// all others where they were: what the interpreter shall run.
Ref<Module> with_private_buffers(const Ref<Module>& module);

}  // namespace tilewright::analysis
