// Copy a buffer into a new one, and let readers read the copy.
//
//   Before                                After  sch.cache_read(C, 0, "global")
//   for i in range(16):                   A_global = T.alloc_buffer((16,))
//     with T.block("C"):                  for ax0 in range(16):
//       vi = T.axis.spatial(16, i)          with T.block("A_global"):
//       C[vi] = A[vi] * 2.0                   v0 = T.axis.spatial(16, ax0)
//                                             A_global[v0] = A[v0]
//                                         for i in range(16):
//                                           with T.block("C"):
//                                             vi = T.axis.spatial(16, i)
//                                             C[vi] = A_global[vi] * 2.0
//
// The copy stands after the statement that writes the buffer, or first in the scope when none does. It is of the whole
// buffer, or of the box that the only writer surely completes.
//
// Requires  P1 the block reads the buffer · P2 a known storage scope · P3 the consumers read the buffer in the same
// scope
//           P4 at most one block of the scope writes the buffer, and all consumers come after the statement that holds
//           it P5 no consumer writes the buffer · P6 what the consumers read is inside what was copied
#include <algorithm>

#include "analysis/cover.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "schedule/cache_stage.h"

namespace tilewright::schedule {
namespace {

struct Source {
  int statement = Tree::kNone;  ///< the statement after which the buffer is complete; none: always
  arith::Box box;               ///< what is copied; empty: everything
};

Result<Source> find_source(const Tree& tree, const Place& block, const Ref<Buffer>& buffer,
                           const std::vector<int>& consumers, arith::Analyzer& analyzer) {
  const analysis::Scope& scope = analysis::Scope::of(tree.block_at(tree[block.at].scope));
  std::vector<int> writers = scope.writers(buffer);
  Source source;
  if (writers.empty()) return source;
  auto at = [&](int child) { return tree.block(scope.children()[child]->block->id.value); };
  int writer = at(writers.back());
  source.statement = outermost_statement(tree, writer);
  for (int child : writers) {
    // An init and its update count as one: they stand in one statement.
    if (outermost_statement(tree, at(child)) == source.statement) continue;
    return refuse("cache_read/P4", "several blocks write '" + buffer->name + "'",
                  {tree.stmt(at(child)), tree.stmt(writer)});
  }
  for (int consumer : consumers) {
    if (consumer > source.statement && !tree.contains(source.statement, consumer)) continue;
    return refuse("cache_read/P4",
                  describe_block(tree.block_at(consumer)) + " does not come after all of the statement that writes '" +
                      buffer->name + "'",
                  {tree.stmt(consumer), tree.stmt(writer)}, "cache before compute_at moves the blocks together");
  }
  const BlockRealize& realize = *tree.realize_at(writer);
  for (const Ref<BufferRegion>& write : realize.block->writes) {
    if (!(write->buffer == buffer)) continue;
    if (auto box = analysis::produced(realize, write, tree, tree.loops_above(writer), analyzer)) source.box = *box;
  }
  return source;
}

}  // namespace

Result<Plan> plan(const State& state, const CacheRead& step) {
  TW_TRY(block, state.find(step.block));
  const Tree& tree = *block.tree;
  TW_TRY(position, resolve_buffer(block, block.block().reads, step.read_buffer_index, "cache_read"));
  TW_RETURN_IF_ERROR(check_storage_scope(block, step.storage_scope, "cache_read"));
  Ref<Buffer> buffer = block.block().reads[static_cast<size_t>(position)]->buffer;
  TW_TRY(consumers, cache_readers(state, block, buffer, step.consumer_blocks.items, true, "cache_read"));
  for (int at : consumers) {
    for (const Ref<BufferRegion>& write : tree.block_at(at).writes) {
      if (write->buffer->data != buffer->data) continue;
      return refuse("cache_read/P5", describe_block(tree.block_at(at)) + " also writes '" + buffer->name + "'",
                    {tree.stmt(at)}, "list the other readers in consumer_blocks");
    }
  }
  arith::Analyzer analyzer;
  TW_TRY(source, find_source(tree, block, buffer, consumers, analyzer));
  for (int at : consumers) {
    for (const Ref<BufferRegion>& read : tree.block_at(at).reads) {
      if (read->buffer != buffer || source.box.empty()) continue;
      arith::Box wanted = analysis::required(*tree.realize_at(at), read, tree, tree.loops_above(at), analyzer);
      if (arith::proves_subset(wanted, source.box, analyzer)) continue;
      return refuse("cache_read/P6",
                    describe_block(tree.block_at(at)) + " reads " + brief(read) + ", part of which was not written",
                    {tree.stmt(at)});
    }
  }

  Ref<Buffer> cache = make_cache(buffer, step.storage_scope);
  CacheStage stage = copy_stage(buffer, cache, cache->name, source.box, analyzer);
  int scope = tree[block.at].scope;
  TreeEdit edit(tree);
  if (source.statement != Tree::kNone) {
    edit.insert_after(source.statement, stage.nest);
  } else {
    std::vector<int> body = tree.children(scope);
    int first = body.empty() ? scope : body.back();
    for (int c : body) {
      if (!tree[c].in_init) {
        first = c;
        break;
      }
    }
    if (tree.stmt(first).is<SeqStmt>()) first = tree.children(first).front();
    edit.insert_before(first, stage.nest);
  }
  for (int at : consumers) edit.replace(at, with_buffer(tree, at, buffer, cache));
  edit.change_block(scope, [&](Block& b) { b.alloc_buffers.push_back(cache); });

  Plan plan;
  plan.func = block.func;
  plan.root = edit.finish();
  plan.outputs.push_back(Handle::block(block.func, *stage.block));
  CacheRead recorded = step;
  recorded.read_buffer_index = position;
  plan.recorded = recorded;
  return plan;
}

}  // namespace tilewright::schedule
