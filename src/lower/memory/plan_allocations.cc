// Move the buffers of blocks to the innermost place that holds all their accesses.
//
//   Before                                   After
//   with T.block("root"):                    with T.block("root"):
//     t = T.alloc_buffer((64, 64))             for i in range(64):
//     for i in range(64):                        with T.block(""):
//       for j in range(64):                        t = T.alloc_buffer((64, 64))
//         with T.block("t"): t[i, j] = ...         for j in range(64):
//       for j in range(64):                          with T.block("t"): t[i, j] = ...
//         with T.block("B"): ... = t[i, j]         for j in range(64):
//                                                    with T.block("B"): ... = t[i, j]
//
// Needs      blocks with axes and inits
// Ensures    a buffer is allocated inside a loop only if no value in it outlives an iteration of that loop: the rules
//            are those of analysis/allocation_locations.h, which the interpreter shares.
// Placement  while blocks are whole: types of axes and inits show which loops carry values. Before compaction, which
//            shrinks a buffer to what is accessed where it is allocated.
#include "analysis/allocation_locations.h"
#include "lower/passes.h"

namespace tilewright::lower {

PassResult plan_allocations(const Ref<PrimFunc>& func, PassContext&) {
  return analysis::with_planned_allocations(func);
}

}  // namespace tilewright::lower
