// Computes at which loop or block each buffer of a function is allocated: the innermost one in which every value is
// written before it is read. Lowering and the reference interpreter allocate buffers at these locations.
//
//   t = T.alloc_buffer((66,))                 t is allocated in the loop i: an iteration reads only elements that it
//   for i in T.parallel(8):                   has written. The iterations of a parallel loop also need private buffers,
//     for j in range(10): t[i * 8 + j] = ..   since neighboring iterations write overlapping elements at the same time.
//     for j in range(8): ... = t[..]
//
// If the memory scope gives each iteration of a thread-bound loop its own copy of the buffer ("local", for example),
// the location is inside that loop, unless a loop around it drives a reduction into the buffer. Otherwise a location is
// never inside a loop of these kinds, through which the buffer may carry values:
//   - a vectorized loop, whose iterations are lanes;
//   - a loop bound to a thread axis, if the buffer is in main memory, which all threads and blocks share;
//   - a loop that drives a reduction of a block that writes the buffer;
//   - a loop whose iterations read elements that they have not provably written. For a parallel or thread-bound loop,
//     this is checked only if a serial loop runs around it. Otherwise the loop runs once, so no earlier execution can
//     have left values, and its own iterations have no order in which values could flow. The interpreter reports such
//     reads.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

struct AllocationLocation {
  Ref<Buffer> buffer;
  NodeRef location;  ///< the For or the Block in whose body the buffer is allocated
  Ref<For> shared;   ///< the innermost parallel or thread-bound loop from the declaring block to the location, or null
};

/// Whether each iteration of the loop would get a private buffer if the iterations ran in parallel.
bool is_private_to(const Tree& tree, int loop, const Ref<Buffer>& buffer);

/// Returns the locations of all accessed buffers, in the order of their declarations.
std::vector<AllocationLocation> allocation_locations(const Ref<PrimFunc>& func);
std::vector<AllocationLocation> allocation_locations(const Ref<Block>& root);

/// Whether the location is inside the loop.
bool is_allocated_below(const Tree& tree, int loop, const NodeRef& location);

/// Returns the function with its buffers allocated at these locations. Buffers that are never accessed are removed.
Ref<PrimFunc> with_planned_allocations(const Ref<PrimFunc>& func);

/// Returns the module that the interpreter runs: buffers that are private to the iterations of parallel and
/// thread-bound loops are allocated inside of these loops, and all others stay where they are.
Ref<Module> with_private_buffers(const Ref<Module>& module);

}  // namespace tilewright::analysis
