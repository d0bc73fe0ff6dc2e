// Set the axis separators of a buffer.
//
//   Before                                   After  sch.set_axis_separator(B, ("write", 0), [1])
//   B = T.alloc_buffer((16, 8))              B = T.alloc_buffer((16, 8), axis_separators=[1])
//   for i, j in T.grid(16, 8):               for i, j in T.grid(16, 8):
//     with T.block("B"):                       with T.block("B"):
//       vi, vj = T.axis.remap("SS", [i, j])      vi, vj = T.axis.remap("SS", [i, j])
//       B[vi, vj] = A[vi, vj]                    B[vi, vj] = A[vi, vj]
//
// Requires  P1 the block touches the buffer
//           P2 the separators ascend, and are between axes of the buffer
//           P3 a block allocates the buffer, or it is a parameter
//
// Views of the buffer get the same separators; where they have other dimensions, as many before the first axis.
#include <algorithm>
#include <unordered_map>

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/primitives/set_axis_separator.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const SetAxisSeparator& step) {
  TW_TRY(block, state.find(step.block));
  const Tree& tree = *block.tree;
  SetAxisSeparator recorded = step;
  TW_TRY(buffer, touched_buffer(recorded.buffer, block, "set_axis_separator/P1"));
  const auto& separators = step.axis_separators;
  const auto rank = static_cast<int64_t>(buffer->shape.size());
  bool ascending = std::ranges::is_sorted(separators, std::less_equal<>());
  if (!ascending || (!separators.empty() && (separators.front() < 0 || separators.back() > rank))) {
    return refuse("set_axis_separator/P2",
                  "'" + buffer->name + "' has " + std::to_string(rank) +
                      " axes, and the separators are not in order between them",
                  block, "[1] separates the first axis from all others");
  }
  bool own = is_parameter(state, block.func, buffer);
  for (int at : tree.blocks()) {
    const auto& allocated = tree.block_at(at).alloc_buffers;
    own |= any_of(allocated, [&](const auto& known) { return known == buffer; });
  }
  if (!own) {
    return refuse("set_axis_separator/P3", "'" + buffer->name + "' is a view of another buffer", block,
                  "set those of the buffer that it views");
  }
  auto with = [](const Ref<Buffer>& old, std::vector<int64_t> between) {
    Buffer changed = *old;
    changed.axis_separators = std::move(between);
    return make(std::move(changed));
  };
  std::unordered_map<NodeRef, Ref<Buffer>> changed{{buffer, with(buffer, separators)}};
  Ref<Block> root = tree.block_ref(0);
  visit(root, [&](const Ref<MatchBufferRegion>& match) {
    if (changed.count(match->source->buffer)) {
      const Ref<Buffer>& view = match->buffer;
      bool same_rank = view->shape.size() == buffer->shape.size();
      changed[view] = with(view, same_rank ? separators : std::vector<int64_t>(separators.size(), 0));
    }
  });
  Ref<Block> after = replace_buffers(root, changed).borrow<Block>();
  Plan plan = with_buffer(state, block.func, buffer, changed[buffer], std::move(after));
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
