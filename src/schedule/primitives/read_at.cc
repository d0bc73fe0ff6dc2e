// Copy what is read of a buffer below a loop, in each iteration before it is read.
//
//   Before                                After  sch.read_at(i, B, 0, "local")
//   for i, j in T.grid(4, 4):             A_local = T.alloc_buffer((16,), scope="local")
//     with T.block("B"):                  for i in range(4):
//       vi = T.axis.spatial(16, i * 4 + j)  with T.block("A_local"):
//       B[vi] = A[vi] + 1.0                   v0 = T.axis.spatial(4, i)
//                                             T.reads(A[v0 * 4:v0 * 4 + 4])
//                                             T.writes(A_local[v0 * 4:v0 * 4 + 4])
//                                             T.block_attr({"auto_copy": 1})
//                                             for ax0 in range(4):
//                                               A_local[v0 * 4 + ax0] = A[v0 * 4 + ax0]
//                                           for j in range(4):
//                                             with T.block("B"):
//                                               vi = T.axis.spatial(16, i * 4 + j)
//                                               B[vi] = A_local[vi] + 1.0
//
// Requires  P1 the loop is around the block, in its scope, with blocks and loops only below it; the read exists
//           P2 the scope is a storage scope
//           P3 nothing below the loop writes the buffer once it has been read, and it has one name in the scope
//           P4 what is copied has its value by then, and is all that is read
//           P9 parallel loops around stay independent
#include "schedule/primitives/read_at.h"

#include "schedule/region_copy.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const ReadAt& copy) {
  TW_TRY(target, find_copy_loop(state, copy.loop, copy.block, "read_at/P1"));
  const auto& regions = target.block.block().reads;
  TW_TRY(position, buffer_position(copy.read_buffer_index, regions, target.block, "read", "read_at/P1"));
  CopyCodes codes{"read_at/P1", "read_at/P2", "read_at/P3", "read_at/P4", "read_at/P9"};
  TW_TRY(plan, copy_at(state, target, regions[position]->buffer, copy.storage_scope, true, codes));
  plan.recorded = recorded_with(copy, &ReadAt::read_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
