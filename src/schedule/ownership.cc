#include "schedule/ownership.h"

#include "analysis/allocation_locations.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Whether buffers may be lost. A parallel loop inside of a serial one runs several times; otherwise nothing depends on
/// the old contents of its buffers. A loop may also be a copy of an old one. For threads, the scope of a buffer
/// decides.
bool may_lose_buffers(const Tree& before, const Tree& after) {
  for (int at : after.concurrent_loops()) {
    if (!analysis::runs_on_threads(after.for_at(at).kind)) continue;
    if (before.loop(after.for_at(at).loop_var) == Tree::kNone) return true;
    if (after.for_at(at).kind != ForKind::kParallel) continue;
    for (int outer = after[at].parent; outer != Tree::kNone; outer = after[outer].parent) {
      if (!after[outer].is_loop) continue;
      const For& loop = after.for_at(outer);
      if (!analysis::runs_on_threads(loop.kind) && !is_const_int(loop.extent, 1)) return true;
    }
  }
  return false;
}

bool allocates(const Tree& tree) {
  return any_of(tree.blocks(), [&](int block) { return !tree.block_at(block).alloc_buffers.empty(); });
}

/// The buffer, or the one that has taken its place.
const analysis::AllocationLocation* find_location(const std::vector<analysis::AllocationLocation>& locations,
                                                  const Ref<Buffer>& buffer) {
  auto find = [&](auto&& is_it) { return find_if(locations, is_it); };
  auto found = find([&](const analysis::AllocationLocation& location) { return location.buffer == buffer; });
  if (found == locations.end()) {
    found = find([&](const analysis::AllocationLocation& location) { return location.buffer->name == buffer->name; });
  }
  return found == locations.end() ? nullptr : &*found;
}

}  // namespace

bool may_lose_owned_buffers(const State& state, const Plan& plan) {
  if (!plan.root.defined()) return false;
  const Tree& after = Tree::of(plan.root);
  auto before = state.tree(plan.func);
  return before.ok() && !after.concurrent_loops().empty() && allocates(after) && may_lose_buffers(**before, after);
}

Status check_owned_buffers(const State& state, const Plan& plan) {
  if (!plan.root.defined()) return Ok{};
  const Tree& after = Tree::of(plan.root);
  TW_TRY(before, state.tree(plan.func));
  std::vector<analysis::AllocationLocation> locations = analysis::allocation_locations(plan.root);
  for (const analysis::AllocationLocation& old : analysis::allocation_locations(before->block_ref(0))) {
    if (!old.shared.defined()) continue;
    const analysis::AllocationLocation* now = find_location(locations, old.buffer);
    int loop = after.loop(old.shared->loop_var);
    // If copies have replaced a loop, one of them owns the buffer.
    bool owned = !now || (loop == Tree::kNone ? now->shared.defined() : is_allocated_below(after, loop, now->location));
    if (owned) continue;
    return refuse("schedule/shared-buffer",
                  "each iteration of " + describe_loop(*old.shared) + " has a '" + old.buffer->name +
                      "' of its own, since it reads only what it has written; after this step that cannot be proved",
                  {old.shared}, "take this step before the loop is made parallel or bound to a thread");
  }
  return Ok{};
}

}  // namespace tilewright::schedule
