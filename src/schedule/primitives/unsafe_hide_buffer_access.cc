// Remove regions from the declared accesses of a block.
//
//   Before                           After  sch.unsafe_hide_buffer_access(B, "read", [1])
//   for i in range(16):              for i in range(16):
//     with T.block("B"):               with T.block("B"):
//       vi = T.axis.spatial(16, i)       vi = T.axis.spatial(16, i)
//       T.reads(A[vi], C[vi])            T.reads(A[vi])
//       T.writes(B[vi])                  T.writes(B[vi])
//       B[vi] = A[vi]                    B[vi] = A[vi]
//
// Unsafe: the block still touches what it no longer declares.
//
// Requires  P1 the kind of region is "read" or "write"
//           P2 the block has regions at these positions

#include "schedule/primitives/unsafe_hide_buffer_access.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const UnsafeHideBufferAccess& step) {
  TW_TRY(block, state.find(step.block));
  if (step.buf_type != "read" && step.buf_type != "write") {
    return refuse("unsafe_hide_buffer_access/P1", "buf_type is '" + step.buf_type + "'", block, "'read' or 'write'");
  }
  const bool read = step.buf_type == "read";
  const auto count = static_cast<int64_t>((read ? block.block().reads : block.block().writes).size());
  for (int64_t position : step.buf_index_array) {
    if (position >= 0 && position < count) continue;
    return refuse("unsafe_hide_buffer_access/P2",
                  describe(block) + " has no " + step.buf_type + " number " + std::to_string(position), block,
                  "positions count from 0 in T.reads or T.writes");
  }
  TreeEdit edit(*block.tree);
  edit.change_block(block.at, [&](Block& changed) {
    auto& regions = read ? changed.reads : changed.writes;
    std::vector<Ref<BufferRegion>> left;
    for (int64_t i = 0; i < count; ++i) {
      const auto& hidden = step.buf_index_array;
      if (!is_contained(hidden, i)) left.push_back(regions[i]);
    }
    regions = std::move(left);
  });
  Plan plan = give_loops(block.func, edit.finish(), {});
  plan.stated = "nothing depends on what " + describe(block) + " does not declare";
  return plan;
}

}  // namespace tilewright::schedule
