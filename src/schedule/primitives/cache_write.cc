// Let a block write a new buffer, and copy that back to the old one.
//
//   Before                                After  sch.cache_write(C, 0, "local")
//   for i in range(16):                   C_local = T.alloc_buffer((16,), scope="local")
//     with T.block("C"):                  for i in range(16):
//       vi = T.axis.spatial(16, i)          with T.block("C"):
//       C[vi] = A[vi] * 2.0                   vi = T.axis.spatial(16, i)
//                                             C_local[vi] = A[vi] * 2.0
//                                         for ax0 in range(16):
//                                           with T.block("C_local"):
//                                             v0 = T.axis.spatial(16, ax0)
//                                             C[v0] = C_local[v0]
//
// Requires  P1 the block writes the buffer · P2 a known storage scope · P3 the consumers read the buffer in the same
// scope
//           P4 no other block of the scope writes the buffer · P5 the block does not need what the buffer held before
//           P6 the block surely completes a box, which is copied back · P7 the other readers come after the statement
//           that holds the block
#include <algorithm>

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/scope.h"
#include "schedule/cache_stage.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const CacheWrite& step) {
  TW_TRY(block, state.find(step.block));
  const Tree& tree = *block.tree;
  TW_TRY(position, resolve_buffer(block, block.block().writes, step.write_buffer_index, "cache_write"));
  TW_RETURN_IF_ERROR(check_storage_scope(block, step.storage_scope, "cache_write"));
  const Ref<BufferRegion>& write = block.block().writes[static_cast<size_t>(position)];
  Ref<Buffer> buffer = write->buffer;
  TW_TRY(consumers, cache_readers(state, block, buffer, step.consumer_blocks.items, false, "cache_write"));
  const analysis::Scope& scope = analysis::Scope::of(tree.block_at(tree[block.at].scope));
  for (int child : scope.writers(buffer)) {
    int at = tree.block(scope.children()[child]->block->id.value);
    if (at == block.at) continue;
    return refuse("cache_write/P4", describe_block(tree.block_at(at)) + " also writes '" + buffer->name + "'",
                  {tree.stmt(at), block.node()}, "take the cache before decompose_reduction splits the block");
  }
  auto role = analysis::BlockFacts::of(tree.block_ref(block.at)).role;
  if (role != analysis::BlockRole::kComplete && role != analysis::BlockRole::kReduction) {
    return refuse("cache_write/P5", describe(block) + " may need what '" + buffer->name + "' held before",
                  {block.node()}, "a cache starts empty: the block has to be complete, or a reduction with T.init()");
  }
  arith::Analyzer analyzer;
  auto box = analysis::produced(*tree.realize_at(block.at), write, tree, tree.loops_above(block.at), analyzer);
  if (!box) {
    return refuse("cache_write/P6",
                  "it is not certain which part of '" + buffer->name + "' " + describe(block) + " completes",
                  {block.node()});
  }
  int statement = outermost_statement(tree, block.at);
  for (int child : scope.readers(buffer)) {
    int at = tree.block(scope.children()[child]->block->id.value);
    if (at == block.at || std::find(consumers.begin(), consumers.end(), at) != consumers.end()) continue;
    if (!tree.contains(statement, at)) continue;
    return refuse("cache_write/P7",
                  describe_block(tree.block_at(at)) + " reads '" + buffer->name +
                      "' inside the statement after which it is copied back",
                  {tree.stmt(at)}, "name it in consumer_blocks, so that it reads the cache");
  }

  Ref<Buffer> cache = make_cache(buffer, step.storage_scope);
  CacheStage stage = copy_stage(cache, buffer, cache->name, *box, analyzer);
  TreeEdit edit(tree);
  edit.replace(block.at, with_buffer(tree, block.at, buffer, cache));
  for (int at : consumers) edit.replace(at, with_buffer(tree, at, buffer, cache));
  edit.insert_after(statement, stage.nest);
  edit.change_block(tree[block.at].scope, [&](Block& b) { b.alloc_buffers.push_back(cache); });

  Plan plan;
  plan.func = block.func;
  plan.root = edit.finish();
  plan.outputs.push_back(Handle::block(block.func, *stage.block));
  CacheWrite recorded = step;
  recorded.write_buffer_index = position;
  plan.recorded = recorded;
  return plan;
}

}  // namespace tilewright::schedule
