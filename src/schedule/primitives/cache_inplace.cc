// Make a block update a copy of a buffer.
//
//   Before                              After  sch.cache_inplace(B, 0, "local")
//   for i in range(4):                  A_local = T.alloc_buffer((4, 4), scope="local")
//     with T.block("B"):                for i in range(4):
//       vi = T.axis.spatial(4, i)         for ax0, ax1 in T.grid(1, 4):
//       T.reads(A[vi, 0:4])                 with T.block("A_local"):
//       T.writes(A[vi, 0:4])                  v0 = T.axis.spatial(4, i + ax0)
//       for j in range(4):                    v1 = T.axis.spatial(4, ax1)
//         with T.block("C"):                  A_local[v0, v1] = A[v0, v1]
//           vj = T.axis.spatial(4, j)     with T.block("B"):
//           A[vi, vj] = A[vi, vj] + 1.0     vi = T.axis.spatial(4, i)
//                                           T.reads(A_local[vi, 0:4])
//                                           T.writes(A_local[vi, 0:4])
//                                           for j in range(4):
//                                             with T.block("C"):
//                                               vj = T.axis.spatial(4, j)
//                                               A_local[vi, vj] = A_local[vi, vj] + 1.0
//                                         for ax0, ax1 in T.grid(1, 4):
//                                           with T.block("A_local"):
//                                             v0 = T.axis.spatial(4, i + ax0)
//                                             v1 = T.axis.spatial(4, ax1)
//                                             A[v0, v1] = A_local[v0, v1]
//
// The block finds in the copy what it would find in the buffer, and the buffer has all that it wrote when it is done:
// nothing runs between.
//
// Requires  P1 the read exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 the block writes the buffer too, which has one name in the scope
//           P4 all that the block touches of it is declared (what is behind its pointer: stated), values from before
//              are among what it declares to read, and they are there; the region can be computed without the condition
//              of the block
//           P9 parallel loops around stay independent

#include "schedule/primitives/cache_inplace.h"
#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/may_fail.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "schedule/buffers.h"
#include "schedule/cache.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

struct Update {
  Place block;
  int scope;
  int64_t position;  ///< among the block's reads
  Ref<BufferRegion> read, write;
};

/// Why the elements that the block takes over into its copy might have no value yet: it is the first that writes them,
/// and what it reads of them it has written itself.
std::optional<analysis::Obstacle> why_not_set_before(const State& state, const Place& block, Ref<Buffer> buffer) {
  const Tree& tree = *block.tree;
  if (auto obstacle = analysis::why_inputs_incomplete(tree, block.at)) return obstacle;
  for (int at = block.at; tree[at].scope != Tree::kNone; at = tree[at].scope) {
    const Ref<Block> outer = tree.block_ref(tree[at].scope);
    const auto& scope = analysis::Scope::of(tree, tree[at].scope);
    std::vector<int> writers = scope.writers(buffer);
    std::erase(writers, scope.child(tree.block_at(at).id.value));
    if (!writers.empty()) return analysis::why_inputs_incomplete(tree, at);
    bool starts = outer->init.defined() && tree.touches(outer->writes, buffer);
    if (starts && analysis::BlockFacts::of(outer).role == analysis::BlockRole::kReduction) return std::nullopt;
    for (const Ref<MatchBufferRegion>& match : outer->match_buffers) {
      if (match->buffer == buffer) buffer = match->source->buffer;
    }
    const auto& own = outer->alloc_buffers;
    if (!is_contained(own, buffer)) continue;
    return analysis::Obstacle{"before " + describe(block) + " nothing writes '" + buffer->name + "'", {block.node()}};
  }
  return is_parameter(state, block.func, buffer)
             ? std::nullopt
             : std::optional(
                   analysis::Obstacle{"what '" + buffer->name + "' holds before is not known", {block.node()}});
}

Result<Update> check(const State& state, const CacheInplace& cache) {
  TW_TRY(block, state.find(cache.block));
  const Tree& tree = *block.tree;
  Update update{block, tree[block.at].scope, 0, {}, {}};
  if (update.scope == Tree::kNone)
    return refuse("cache_inplace/P1", "the root block stays", block, "name a block inside of it");
  TW_TRY(position, buffer_position(cache.read_buffer_index, block.block().reads, block, "read", "cache_inplace/P1"));
  update.position = position;
  update.read = block.block().reads[position];
  TW_RETURN_IF_ERROR(require_memory_scope(cache.storage_scope, block, "cache_inplace/P2"));
  const Ref<Buffer>& buffer = update.read->buffer;
  for (const Ref<BufferRegion>& write : block.block().writes) {
    if (write->buffer == buffer) update.write = write;
  }
  if (!update.write.defined()) {
    return refuse("cache_inplace/P3", describe(block) + " does not write '" + buffer->name + "'", block,
                  "for what it only reads there is sch.cache_read");
  }
  TW_RETURN_IF_ERROR(require_one_name(block, update.scope, buffer, "cache_inplace/P3"));
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(block.at));
  if (!facts.undeclared.empty() && facts.trusted.empty()) {
    return refuse("cache_inplace/P4", "what " + describe(block) + " touches is not known: " + facts.undeclared, block,
                  "declare with T.reads and T.writes all that the block touches");
  }
  arith::Analyzer analyzer;
  for (const Ref<IterVar>& axis : block.block().iter_vars) analyzer.bind(axis->var, axis->dom);
  std::vector<Ref<BufferRegion>> taken = facts.live_in;
  if (block.block().init.defined()) taken.push_back(update.write);
  for (const Ref<BufferRegion>& region : taken) {
    if (region->buffer != buffer) continue;
    if (arith::proves_subset(arith::box_of(region->region), arith::box_of(update.read->region), analyzer)) continue;
    return refuse("cache_inplace/P4",
                  describe(block) + " may leave elements of " + analysis::brief(update.write) +
                      " as they were, and does not declare to read them",
                  block, "declare them with T.reads");
  }
  if (auto obstacle = why_not_set_before(state, block, buffer))
    return refuse(
        "cache_inplace/P4", *obstacle,
        "values from before have to come from a parameter, or from one complete writer that stands before the block");
  const arith::Box copied = arith::box_of(update.read->region);
  bool takes_all = any_of(taken, [&](const Ref<BufferRegion>& region) {
    return region->buffer == buffer && arith::proves_subset(copied, arith::box_of(region->region), analyzer);
  });
  if (!takes_all && !is_parameter(state, block.func, buffer)) {
    return refuse("cache_inplace/P4",
                  describe(block) + " writes of " + analysis::brief(update.read) +
                      " before it reads it: that may have no value before",
                  block, "for what it only writes there is sch.cache_write");
  }
  for (const Ref<BufferRegion>& asked : analysis::binding_reads(tree, block.at)) {
    if (!tree.touches(block.block().writes, asked->buffer)) continue;
    return refuse("cache_inplace/P4",
                  describe(block) + " writes '" + asked->buffer->name +
                      "', which decides where or whether it runs: the copy back would ask for that anew",
                  block, "let another block write that");
  }
  return update;
}

/// The region of the buffer that is copied. The loops of a copy also run where the block does not. The block's
/// condition may simplify the ends, as long as they can be computed without it.
Result<arith::Region> copied(const Update& update, const Ref<BufferRegion>& region) {
  const Tree& tree = *update.block.tree;
  const BlockRealize& realize = *tree.realize_at(update.block.at);
  auto outside = analysis::analyzer_above(tree, tree[update.block.at].parent);
  auto fails = [&](const Ref<Range>& r) {
    return analysis::may_fail(r->min, outside) || analysis::may_fail(r->extent, outside);
  };
  for (const bool assumed : {true, false}) {
    auto analyzer = analysis::analyzer_above(tree, tree[update.block.at].parent);
    if (assumed) analysis::assume_all(realize.predicate, analyzer);
    const arith::Box box = arith::box_of(analysis::bound_region(realize, region));
    arith::Region clipped = arith::clip_to_shape(box, region->buffer->shape, analyzer);
    if (none_of(clipped, fails)) return clipped;
  }
  return refuse(
      "cache_inplace/P4",
      "what " + analysis::brief(region) + " is cannot be computed where " + describe(update.block) + " does not run",
      update.block, "split loops by factors that divide them, so that the block runs in each iteration");
}

}  // namespace

Result<Plan> plan(const State& state, const CacheInplace& cache) {
  TW_TRY(update, check(state, cache));
  const Tree& tree = *update.block.tree;
  const Ref<Buffer>& buffer = update.read->buffer;
  const BlockRealize& realize = *tree.realize_at(update.block.at);
  TW_TRY(taken, copied(update, update.read));
  TW_TRY(given, copied(update, update.write));
  Copy in = make_copy(buffer, cache.storage_scope, taken, false), out = in;
  in.condition = out.condition = realize.predicate;
  out.region = given;
  TW_RETURN_IF_ERROR(check_pointers(tree, {update.block.at}, in, "cache_inplace/P4"));

  Ref<Block> reader, writer;
  TreeEdit edit(tree);
  place_copy(edit, {update.scope, update.block.at, false}, in, copy_nest(in, true, &reader));
  edit.insert_after(update.block.at, copy_nest(out, false, &writer));
  edit.change_realize(update.block.at,
                      [&](BlockRealize& changed) { changed.block = redirect(changed.block, in, true, true); });
  Plan plan = give_loops(update.block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  for (uint64_t id : {reader->id.value, update.block.block().id.value, writer->id.value}) {
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(id), "cache_inplace/P9"));
  }
  plan.outputs = {Handle::block(update.block.func, *reader), Handle::block(update.block.func, *writer)};
  plan.recorded = recorded_with(cache, &CacheInplace::read_buffer_index, update.position);
  plan.stated = analysis::BlockFacts::of(tree.block_ref(update.block.at)).trusted;
  return plan;
}

}  // namespace tilewright::schedule
