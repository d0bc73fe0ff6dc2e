// Make a block write a new buffer, and copy it back to the old one.
//
//   Before                                After  sch.cache_write(B, 0, "global")
//   for i in range(16):                   B_global = T.alloc_buffer((16,))
//     with T.block("B"):                  for i in range(16):
//       vi = T.axis.spatial(16, i)          with T.block("B"):
//       B[vi] = A[vi] + 1.0                   vi = T.axis.spatial(16, i)
//                                             B_global[vi] = A[vi] + 1.0
//                                         for ax0 in range(16):
//                                           with T.block("B_global"):
//                                             v0 = T.axis.spatial(16, ax0)
//                                             B[v0] = B_global[v0]
//
// Requires  P1 the write exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 no other block of the scope writes the buffer, this one is complete or a reduction whose axes are not
//              bound to the buffer, and the buffer has one name in the scope
//           P4 it is provable what it writes until the copy, and the copy holds all that is read afterwards;
//              a reduction begins with its init, and whether it has steps is the same for all that is copied
//           P5 the named consumers read it, in the same scope, and neither bind axes to it nor have domains that do
//           P6 what stands in the scope touches the buffer in blocks only
//           P9 parallel loops around stay independent

#include "schedule/primitives/cache_write.h"
#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "schedule/cache.h"
#include "schedule/early_bounds.h"
#include "schedule/kept_shape.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

struct CacheWriteRequest {
  Place block;
  int scope;
  int64_t position;  ///< among the block's writes
  Ref<BufferRegion> write;
  std::vector<int> readers;     ///< other readers of the written buffer in the scope
  std::vector<int> redirected;  ///< readers that will read the new buffer
};

Result<CacheWriteRequest> check(const State& state, const CacheWrite& cache) {
  TW_TRY(write, cached_write(state, cache.block, cache.write_buffer_index, cache.storage_scope,
                             {"cache_write/P1", "cache_write/P2"}));
  const Place& block = write.block;
  const Tree& tree = *block.tree;
  CacheWriteRequest request{block, write.scope, write.position, write.region, {}, {}};
  const Ref<Buffer>& buffer = request.write->buffer;
  const analysis::Scope& scope = analysis::Scope::of(tree, request.scope);
  TW_RETURN_IF_ERROR(require_only_blocks(block, request.scope, "cache_write/P6"));
  int self = scope.child(block.block().id.value);
  if (scope.writers(buffer).size() > 1) {
    return refuse("cache_write/P3",
                  "'" + buffer->name + "' is written by other blocks than " + describe(block) + " as well", block,
                  "cache the write before its reduction is decomposed");
  }
  TW_RETURN_IF_ERROR(require_one_name(block, request.scope, buffer, "cache_write/P3"));
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(block.at));
  if (facts.role != analysis::BlockRole::kComplete && facts.role != analysis::BlockRole::kReduction) {
    return refuse("cache_write/P3",
                  describe(block) + " is neither a complete nor a reduction block: " +
                      (facts.why.empty() ? std::string("it updates elements that have a value before") : facts.why),
                  block, "cache before its reduction is decomposed, or cache_inplace() what it updates");
  }
  if (analysis::binding_reads(*tree.realize_at(block.at), buffer)) {
    return refuse("cache_write/P3",
                  "what " + describe(block) + " writes to '" + buffer->name + "' says where, or how often, it runs",
                  block, "cache another buffer");
  }
  for (int child : scope.readers(buffer)) {
    int reader = scope.position(tree, child);
    // An earlier reader has read the old values, and never sees what the block writes, unless they share a loop.
    bool never = reader < block.at && !share_a_loop(tree, request.scope, reader, block.at);
    if (child != self && !never) request.readers.push_back(reader);
  }
  for (BlockRV rv : cache.consumer_blocks.items) {
    TW_TRY(consumer, state.find(rv));
    if (consumer.func != block.func || !is_contained(request.readers, consumer.at)) {
      return refuse("cache_write/P5",
                    describe(consumer) + " does not read '" + buffer->name + "' in the scope of " + describe(block),
                    {consumer.node(), block.node()}, "sch.get_consumers() gives the blocks that read it");
    }
    if (analysis::binding_reads(*tree.realize_at(consumer.at), buffer)) {
      return refuse("cache_write/P5",
                    describe(consumer) + " binds its axes, or their domains, to what '" + buffer->name +
                        "' holds: it reads the buffer itself",
                    {consumer.node(), block.node()}, "leave it out of the consumers");
    }
    request.redirected.push_back(consumer.at);
  }
  return request;
}

/// The copy back stands before the first reader of the buffer, or at the end of the scope.
Result<std::pair<CopyPlace, Copy>> choose_copy(const CacheWrite& cache, const CacheWriteRequest& request) {
  const Tree& tree = *request.block.tree;
  int writer = request.block.at;
  std::vector<int> later;
  for (int reader : request.readers) {
    if (reader < writer) {
      return refuse("cache_write/P4",
                    describe_block(tree.block_at(reader)) + " reads '" + request.write->buffer->name + "' before " +
                        describe(request.block) + " writes it, in each iteration of a loop",
                    {tree.stmt(reader), request.block.node()}, "cache before the two blocks are put into one loop");
    }
    if (!is_contained(request.redirected, reader)) {
      later.push_back(reader);
    }
  }
  CopyPlace place = later.empty() ? end_of(tree, request.scope) : before_first(tree, request.scope, writer, later);
  int outside = tree[place.near].parent;
  auto loops = analysis::loops_between(tree, outside, writer);
  auto analyzer = analysis::analyzer_above(tree, outside);
  const Ref<Buffer>& buffer = request.write->buffer;
  const BlockRealize& realize = *tree.realize_at(writer);
  if (loops) {
    auto written = written_with_mask(tree, writer, request.write, *loops, analyzer);
    arith::Box all = analysis::touched(realize, request.write, tree, *loops, analyzer);
    if (written && arith::proves_subset(all, written->box, analyzer)) {
      // Sums over nothing have no value to copy. That all of them are read shows that they have steps, where what is
      // read can come from nowhere else.
      const auto& allocated = tree.block_at(request.scope).alloc_buffers;
      bool alone =
          is_contained(allocated, buffer) && analysis::Scope::of(tree, request.scope).writers(buffer).size() == 1;
      if (!alone || !surely_reads(tree, later, buffer, written->box, outside)) {
        Expr runs = run_condition(tree, writer, request.write, *loops, analyzer);
        if (!runs.defined()) {
          return refuse("cache_write/P4",
                        "whether the sums of " + describe(request.block) + " have steps differs between its elements",
                        request.block, "a sum over nothing has no value that a copy could take");
        }
        written->condition = logical_and(written->condition, runs);
      }
      arith::Region region = arith::clip_to_shape(written->box, buffer->shape, analyzer);
      std::vector<Expr> ends;
      for (const Ref<Range>& r : region) ends.insert(ends.end(), {r->min, r->extent});
      if (may_fail_outside(ends, tree, *loops, analyzer)) {
        return refuse("cache_write/P4",
                      "what " + describe(request.block) + " writes of '" + buffer->name +
                          "' cannot be computed where its loops have no iteration",
                      request.block, "cache before the loops around the block are changed");
      }
      Copy copy = make_copy(buffer, cache.storage_scope, std::move(region), place.is_outside_loops(tree));
      set_mask(copy, *written, request.write);
      return std::pair(place, std::move(copy));
    }
  }
  return refuse("cache_write/P4",
                "it cannot be proved what of '" + buffer->name + "' " + describe(request.block) +
                    " has written where the copy would stand",
                request.block, "cache before the loops around the block are changed");
}

}  // namespace

Result<Plan> plan(const State& state, const CacheWrite& cache) {
  TW_TRY(request, check(state, cache));
  const Tree& tree = *request.block.tree;
  TW_TRY(chosen, choose_copy(cache, request));
  const auto& [place, copy] = chosen;
  std::vector<int> changed = request.redirected;
  changed.push_back(request.block.at);
  TW_RETURN_IF_ERROR(check_pointers(tree, changed, copy, "cache_write/P4"));
  TW_RETURN_IF_ERROR(require_kept_shape(tree, place.scope, copy.cache, "cache_write/P4"));

  Ref<Block> copy_block;
  TreeEdit edit(tree);
  place_copy(edit, place, copy, copy_nest(copy, false, &copy_block));
  edit.change_realize(request.block.at, [&](BlockRealize& realize) {
    realize.block = with_axes_of(realize.block, redirect(realize.block, copy, true, true));
  });
  for (int reader : request.redirected) {
    edit.change_realize(reader, [&](BlockRealize& realize) {
      realize.block = with_axes_of(realize.block, redirect(realize.block, copy, true, false));
    });
  }
  Plan plan = give_loops(request.block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int copier = after.block(copy_block->id.value), writer = after.block(request.block.block().id.value);
  int both[] = {writer, copier};
  auto obstacle = analysis::why_init_not_first(after, after.common_ancestor(both), writer);
  if (!obstacle) obstacle = analysis::why_inputs_incomplete(after, copier);
  for (size_t i = 0; i < request.readers.size() && !obstacle; ++i) {
    int reader = after.block(tree.block_at(request.readers[i]).id.value);
    bool redirected = is_contained(request.redirected, request.readers[i]);
    obstacle = redirected ? analysis::why_not_covered(after, writer, reader, copy.cache, copy.whole())
                          : analysis::why_not_covered(after, copier, reader, copy.original);
  }
  if (obstacle) return refuse("cache_write/P4", *obstacle, "cache before the loops around the block are changed");
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, "cache_write/P9"));
  TW_RETURN_IF_ERROR(recheck_execution(after, writer, "cache_write/P9"));
  plan.outputs.push_back(Handle::block(request.block.func, *copy_block));
  plan.recorded = recorded_with(cache, &CacheWrite::write_buffer_index, request.position);
  return plan;
}

}  // namespace tilewright::schedule
