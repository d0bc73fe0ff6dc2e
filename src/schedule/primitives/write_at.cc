// Let the blocks below a loop write a new buffer, and copy that back in each iteration after they have.
//
//   Before                                After  sch.write_at(i, B, 0, "local")
//   for i, j in T.grid(4, 4):             B_local = T.alloc_buffer((16,), scope="local")
//     with T.block("B"):                  for i in range(4):
//       vi = T.axis.spatial(16, i * 4 + j)  for j in range(4):
//       B[vi] = A[vi] + 1.0                   with T.block("B"):
//                                               vi = T.axis.spatial(16, i * 4 + j)
//                                               B_local[vi] = A[vi] + 1.0
//                                           with T.block("B_local"):
//                                             v0 = T.axis.spatial(4, i)
//                                             T.reads(B_local[v0 * 4:v0 * 4 + 4])
//                                             T.writes(B[v0 * 4:v0 * 4 + 4])
//                                             T.block_attr({"auto_copy": 1})
//                                             for ax0 in range(4):
//                                               B[v0 * 4 + ax0] = B_local[v0 * 4 + ax0]
//
// Requires  P1 the loop is around the block, in its scope, with blocks and loops only below it; the write exists
//           P2 the scope is a storage scope
//           P3 the buffer has one name in the scope
//           P4 what is copied back is complete by then, all of it in the same iteration; and so is what is read of it
#include "schedule/primitives/write_at.h"

#include "schedule/region_copy.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const WriteAt& copy) {
  TW_TRY(target, find_copy_loop(state, copy.loop, copy.block, "write_at/P1"));
  const auto& regions = target.block.block().writes;
  TW_TRY(position, buffer_position(copy.write_buffer_index, regions, target.block, "write", "write_at/P1"));
  CopyCodes codes{"write_at/P1", "write_at/P2", "write_at/P3", "write_at/P4", "write_at/P4"};
  TW_TRY(plan, copy_at(state, target, regions[position]->buffer, copy.storage_scope, false, codes));
  plan.recorded = recorded_with(copy, &WriteAt::write_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
