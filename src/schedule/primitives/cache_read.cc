// Copy a buffer into a new one, and let readers read the copy.
//
//   Before                                After  sch.cache_read(B, 0, "global")
//   for i in range(16):                   A_global = T.alloc_buffer((16,))
//     with T.block("B"):                  for ax0 in range(16):
//       vi = T.axis.spatial(16, i)          with T.block("A_global"):
//       B[vi] = A[vi] + 1.0                   v0 = T.axis.spatial(16, ax0)
//                                             A_global[v0] = A[v0]
//                                         for i in range(16):
//                                           with T.block("B"):
//                                             vi = T.axis.spatial(16, i)
//                                             B[vi] = A_global[vi] + 1.0
//
// Requires  P1 the read exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 at most one block of the scope writes the buffer; it is complete or a reduction and stands before the
//              reader; and the buffer has one name in the scope
//           P4 the copy holds all that the readers read
//           P5 the named consumers read it, in the same scope and after it is written
//           P6 what stands in the scope touches the buffer in blocks only
//           P9 parallel loops around stay independent
#include <algorithm>

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "schedule/cache.h"
#include "schedule/relocate.h"

namespace tilewright::schedule {
namespace {

/// Positions of the readers to redirect. Those before the writer read what the buffer holds without it.
Result<std::vector<int>> find_consumers(const State& state, const std::vector<BlockRV>& named, const Place& block,
                                        const analysis::Scope& scope, const Ref<Buffer>& buffer, int writer) {
  const Tree& tree = *block.tree;
  std::vector<int> readers;
  for (int child : scope.readers(buffer)) {
    int reader = tree.block(scope.children()[child]->block->id.value);
    if (reader > writer) readers.push_back(reader);
  }
  if (named.empty()) return readers;
  std::vector<int> chosen;
  for (BlockRV rv : named) {
    TW_TRY(consumer, state.find(rv));
    if (consumer.func != block.func || std::find(readers.begin(), readers.end(), consumer.at) == readers.end()) {
      return refuse("cache_read/P5",
                    describe(consumer) + " does not read '" + buffer->name + "' in the scope of " + describe(block) +
                        (writer == -1 ? "" : " after it is written"),
                    {consumer.node(), block.node()});
    }
    chosen.push_back(consumer.at);
  }
  return chosen;
}

/// After the writer, in the innermost sequence that it shares with a reader.
CopyPlace after_writer(const Tree& tree, int scope, int writer, const std::vector<int>& readers) {
  int innermost = scope;
  for (int reader : readers) {
    int both[] = {writer, reader};
    innermost = std::max(innermost, tree.common_ancestor(both));
  }
  return {scope, tree.child_towards(innermost, writer), true};
}

/// Why the block might find elements of the buffer that nothing has written, among those that it declares to read:
/// those that only a condition keeps it from reading would be copied all the same. Parameters come with values.
std::optional<analysis::Obstacle> why_not_all_written(const Tree& tree, int block, const Ref<Buffer>& buffer) {
  for (int at = block; tree[at].scope != Tree::kNone; at = tree[at].scope) {
    const analysis::Scope& scope = analysis::Scope::of(tree.block_at(tree[at].scope));
    const auto& allocated = tree.block_at(at).alloc_buffers;
    if (std::find(allocated.begin(), allocated.end(), buffer) != allocated.end()) return std::nullopt;
    std::vector<int> writers = scope.writers(buffer);
    if (writers.empty()) continue;
    if (writers.size() > 1) return analysis::why_inputs_incomplete(tree, at);
    int writer = tree.block(scope.children()[writers[0]]->block->id.value);
    return analysis::why_not_covered(tree, writer, at, buffer);
  }
  return std::nullopt;
}

bool is_parameter(const State& state, uint32_t func, const Ref<Buffer>& buffer) {
  const auto& map = state.function_at(func).as<PrimFunc>()->buffer_map;
  return std::any_of(map.begin(), map.end(), [&](const auto& entry) { return entry.second == buffer; });
}

struct Request {
  Place block;
  int scope;
  int64_t position;  ///< among the block's reads
  int writer;        ///< -1: the buffer comes from outside of the scope
  std::vector<int> readers;
};

/// What there is to copy, and where.
Result<std::pair<CopyPlace, Copy>> choose_copy(const State& state, const CacheRead& cache, const Request& request) {
  const Tree& tree = *request.block.tree;
  const Ref<Buffer>& buffer = request.block.block().reads[request.position]->buffer;
  arith::Region region;
  if (request.writer == -1) {
    if (!is_parameter(state, request.block.func, buffer)) {
      if (auto obstacle = why_not_all_written(tree, request.scope, buffer)) return refuse("cache_read/P4", *obstacle);
    }
    for (const Expr& extent : buffer->shape) region.push_back(range_of(extent));
    for (const Ref<BufferRegion>& read : tree.block_at(request.scope).reads) {
      if (read->buffer == buffer) region = read->region;
    }
    arith::Analyzer analyzer;
    analysis::bind_above(analyzer, tree, request.scope);
    region = arith::clip_to_shape(arith::box_of(region), buffer->shape, analyzer);
    return std::pair(CopyPlace{request.scope, -1, false}, make_copy(buffer, cache.storage_scope, region, true));
  }
  const Block& producer = tree.block_at(request.writer);
  if (request.block.at < request.writer) {
    return refuse(
        "cache_read/P3",
        describe(request.block) + " reads '" + buffer->name + "' before " + describe_block(producer) + " writes it",
        {tree.stmt(request.writer), request.block.node()});
  }
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(request.writer));
  bool plain = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
  if (request.writer == request.block.at || !plain) {
    return refuse("cache_read/P3",
                  describe_block(producer) + ", which writes '" + buffer->name +
                      "', is neither a complete nor a reduction block" + (facts.why.empty() ? "" : ": " + facts.why),
                  {tree.stmt(request.writer), request.block.node()});
  }
  CopyPlace place = after_writer(tree, request.scope, request.writer, request.readers);
  int outside = tree[place.near].parent;
  auto loops = analysis::loops_between(tree, outside, request.writer);
  arith::Analyzer analyzer;
  analysis::bind_above(analyzer, tree, outside);
  std::optional<Written> written;
  for (const Ref<BufferRegion>& write : producer.writes) {
    if (write->buffer == buffer && loops) written = written_by(tree, request.writer, write, *loops, analyzer);
  }
  if (!written) {
    return refuse("cache_read/P4",
                  "it cannot be proved what of '" + buffer->name + "' " + describe_block(producer) +
                      " has written where the copy would stand",
                  {tree.stmt(request.writer), request.block.node()});
  }
  // Right in the body of the scope the region does not vary, and the copy can be as small as it.
  bool direct = outside == request.scope || tree[outside].parent == request.scope;
  Copy copy =
      make_copy(buffer, cache.storage_scope, arith::clip_to_shape(written->box, buffer->shape, analyzer), direct);
  copy.condition = written->condition;
  return std::pair(place, std::move(copy));
}

}  // namespace

Result<Plan> plan(const State& state, const CacheRead& cache) {
  TW_TRY(block, state.find(cache.block));
  const Tree& tree = *block.tree;
  Request request{block, tree[block.at].scope, 0, -1, {}};
  if (request.scope == Tree::kNone) return refuse("cache_read/P1", "the root block is no reader", {block.node()});
  TW_TRY(position, buffer_position(cache.read_buffer_index, block.block().reads, block, "read", "cache_read/P1"));
  request.position = position;
  if (!is_storage_scope(cache.storage_scope)) {
    return refuse("cache_read/P2", "'" + cache.storage_scope + "' is no storage scope", {block.node()},
                  "use \"global\", \"local\" or \"shared\"");
  }
  const Ref<Buffer>& buffer = block.block().reads[position]->buffer;
  const analysis::Scope& scope = analysis::Scope::of(tree.block_at(request.scope));
  if (scope.bare_statement()) {
    return refuse("cache_read/P6", "in the scope of " + describe(block) + " stands a statement outside of any block",
                  {NodeRef(scope.bare_statement())}, "put it into a block");
  }
  std::vector<int> writers = scope.writers(buffer);
  if (writers.size() > 1) {
    return refuse("cache_read/P3", "several blocks write '" + buffer->name + "'", {block.node()},
                  "make the copy before the reduction is decomposed");
  }
  if (Ref<Buffer> other = other_name(tree, request.scope, buffer); other.defined()) {
    return refuse(
        "cache_read/P3",
        "in the scope of " + describe(block) + ", '" + buffer->name + "' is known as '" + other->name + "' too",
        {block.node()}, "cache the buffer outside of the block that makes the view");
  }
  if (!writers.empty()) request.writer = tree.block(scope.children()[writers[0]]->block->id.value);
  TW_TRY(readers, find_consumers(state, cache.consumer_blocks.items, block, scope, buffer, request.writer));
  request.readers = readers;
  TW_TRY(chosen, choose_copy(state, cache, request));
  const auto& [place, copy] = chosen;

  Ref<Block> made;
  TreeEdit edit(tree);
  place_copy(edit, tree, place, copy, copy_nest(copy, true, &made));
  for (int reader : request.readers) {
    edit.change_realize(reader,
                        [&](BlockRealize& realize) { realize.block = redirect(realize.block, copy, true, false); });
  }
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int copier = after.block(made->id.value);
  auto obstacle = analysis::why_inputs_incomplete(after, copier);
  for (size_t i = 0; i < request.readers.size() && !obstacle; ++i) {
    int reader = after.block(tree.block_at(request.readers[i]).id.value);
    obstacle = analysis::why_not_covered(after, copier, reader, copy.cache, copy.whole());
  }
  if (obstacle) return refuse("cache_read/P4", *obstacle);
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, "cache_read/P9"));
  plan.outputs.push_back(Handle::block(block.func, *made));
  CacheRead recorded = cache;
  recorded.read_buffer_index = position;
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
