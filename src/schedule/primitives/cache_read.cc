// Copy a buffer into a new one, and redirect its readers to the copy.
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
//              reader, or after all iterations of it; and the buffer has one name in the scope
//           P4 the copy holds all that the readers read
//           P5 the named consumers read it, in the same scope, and the same values as the block
//           P6 what stands in the scope touches the buffer in blocks only
//           P9 parallel loops around stay independent
#include <algorithm>

#include "analysis/accesses.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/may_fail.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "schedule/cache.h"
#include "schedule/kept_shape.h"
#include "schedule/primitives/cache_read.h"
#include "schedule/redeclare.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

struct CacheReadRequest {
  Place block;
  int scope;
  int64_t position;  ///< among the block's reads
  int writer;        ///< Tree::kNone: the buffer is written outside of the scope, or after all readers have run
  std::vector<int> readers;
};

/// Positions of the readers to redirect: those that read the same values as the block. What stands before the only
/// writer reads what the buffer holds without it.
Result<std::vector<int>> find_consumers(const State& state, const CacheRead& cache, const CacheReadRequest& request,
                                        const analysis::Scope& scope, const Ref<Buffer>& buffer, int writer) {
  const Tree& tree = *request.block.tree;
  bool before = request.block.at < writer;
  std::vector<int> readers;
  for (int child : scope.readers(buffer)) {
    int reader = scope.position(tree, child);
    if (before ? reader < writer : reader > writer) readers.push_back(reader);
  }
  if (cache.consumer_blocks.items.empty()) return readers;
  std::vector<int> chosen;
  for (BlockRV rv : cache.consumer_blocks.items) {
    TW_TRY(consumer, state.find(rv));
    if (consumer.func != request.block.func || !is_contained(readers, consumer.at)) {
      return refuse("cache_read/P5",
                    describe(consumer) + " does not read '" + buffer->name + "' in the scope of " +
                        describe(request.block) +
                        (writer == Tree::kNone ? ""
                         : before              ? " before it is written"
                                               : " after it is written"),
                    {consumer.node(), request.block.node()}, "sch.get_consumers() gives the blocks that read it");
    }
    chosen.push_back(consumer.at);
  }
  return chosen;
}

/// The copy of what the scope does not write before: what it declares to read, else the whole buffer.
Result<std::pair<CopyPlace, Copy>> copy_from_outside(const State& state, const CacheRead& cache,
                                                     const CacheReadRequest& request) {
  const Tree& tree = *request.block.tree;
  const Ref<Buffer>& buffer = request.block.block().reads[request.position]->buffer;
  if (auto obstacle = why_not_all_written(state, request.block, request.scope, buffer)) {
    return refuse("cache_read/P4", *obstacle,
                  "let a block write all of the buffer before, or cache what another block reads");
  }
  const arith::Region shape = whole_region(buffer->shape);
  arith::Region region = shape;
  const Block& scope = tree.block_at(request.scope);
  for (const Ref<BufferRegion>& read : scope.reads) {
    if (read->buffer == buffer) region = analysis::known_at_start(read, scope.writes)->region;
  }
  auto analyzer = analysis::analyzer_above(tree, request.scope);
  const arith::Box read = arith::box_of(region);
  const arith::Box inside = arith::intersect(read, arith::box_of(shape), analyzer);
  const bool is_nothing = any_of(inside, [](const auto& set) { return set.is_nothing; });
  analysis::SureReads sure;
  sure.add(tree.block_ref(request.scope));
  if (is_nothing || analysis::has_failing_bounds(read, analyzer, sure)) {
    return refuse("cache_read/P4",
                  "what " + describe_block(tree.block_at(request.scope)) + " declares to read of '" + buffer->name +
                      (is_nothing ? "' is out of bounds: there is nothing to copy"
                                  : "' divides by what may be zero, or looks up what may be out of bounds, where "
                                    "nothing is read"),
                  request.block, "declare with T.reads what the block reads");
  }
  region = arith::clip_to_shape(read, buffer->shape, analyzer);
  CopyPlace place = start_of(tree, request.scope);
  Copy copy = make_copy(buffer, cache.storage_scope, region, true);
  const int first = *std::ranges::min_element(request.readers);
  copy.condition =
      written_condition(tree, tree[place.near].parent, first, buffer, request.readers, arith::box_of(copy.region));
  if (!copy.condition.defined()) return refuse_unwritten(request.block, buffer, "cache_read/P4");
  return std::pair(place, std::move(copy));
}

/// Returns the elements to copy, and the location of the copy.
Result<std::pair<CopyPlace, Copy>> choose_copy(const State& state, const CacheRead& cache,
                                               const CacheReadRequest& request) {
  if (request.writer == Tree::kNone) return copy_from_outside(state, cache, request);
  const Tree& tree = *request.block.tree;
  const Ref<Buffer>& buffer = request.block.block().reads[request.position]->buffer;
  const Block& producer = tree.block_at(request.writer);
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(request.writer));
  bool plain = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
  if (request.writer == request.block.at || !plain) {
    return refuse("cache_read/P3",
                  describe_block(producer) + ", which writes '" + buffer->name +
                      "', is neither a complete nor a reduction block" + (facts.why.empty() ? "" : ": " + facts.why),
                  {tree.stmt(request.writer), request.block.node()}, "cache before its reduction is decomposed");
  }
  CopyPlace place = before_first(tree, request.scope, request.writer, request.readers);
  int outside = tree[place.near].parent;
  auto loops = analysis::loops_between(tree, outside, request.writer);
  auto analyzer = analysis::analyzer_above(tree, outside);
  std::optional<Written> written;
  Ref<BufferRegion> by;
  for (const Ref<BufferRegion>& write : producer.writes) {
    if (write->buffer != buffer || !loops) continue;
    Expr runs = run_condition(tree, request.writer, write, *loops, analyzer);
    written = written_with_mask(tree, request.writer, write, *loops, analyzer);
    by = write;
    // Sums over nothing have no value to copy, unless all of them are read.
    if (!written || surely_reads(tree, request.readers, buffer, written->box, outside)) continue;
    if (runs.defined()) written->condition = logical_and(written->condition, runs);
    if (!runs.defined()) written.reset();
  }
  if (!written) {
    return refuse("cache_read/P4",
                  "it cannot be proved what of '" + buffer->name + "' " + describe_block(producer) +
                      " has written where the copy would stand",
                  {tree.stmt(request.writer), request.block.node()},
                  "cache before the loops around the writer are changed");
  }
  Copy copy = make_copy(buffer, cache.storage_scope, arith::clip_to_shape(written->box, buffer->shape, analyzer),
                        place.is_outside_loops(tree));
  set_mask(copy, *written, by);
  return std::pair(place, std::move(copy));
}

/// The only writer in the scope; Tree::kNone if there is none. One after the block runs after all iterations of the
/// loops around it.
Result<int> find_writer(const CacheReadRequest& request, const analysis::Scope& scope, const Ref<Buffer>& buffer) {
  const Tree& tree = *request.block.tree;
  std::vector<int> writers = scope.writers(buffer);
  if (writers.size() > 1) {
    return refuse("cache_read/P3", "several blocks write '" + buffer->name + "'", request.block,
                  "make the copy before the reduction is decomposed");
  }
  if (writers.empty()) return Tree::kNone;
  int writer = tree.block(scope.children()[writers[0]]->block->id.value);
  for (int child : scope.readers(buffer)) {
    int reader = scope.position(tree, child);
    if (request.block.at < writer && reader < writer && share_a_loop(tree, request.scope, reader, writer)) {
      return refuse("cache_read/P3",
                    describe_block(tree.block_at(reader)) + " reads '" + buffer->name + "' before " +
                        describe_block(tree.block_at(writer)) + " writes it, in each iteration of a loop",
                    {tree.stmt(writer), request.block.node()},
                    "a copy can hold the values of one iteration only; cache what the later block reads");
    }
  }
  return writer;
}

/// The variable is the pointer of a parameter, or of a buffer that a block allocates: of no memory but that.
bool is_data_of_buffer(const State& state, const CacheReadRequest& request, const NodeRef& pointer) {
  const auto& map = state.function_at(request.block.func).as<PrimFunc>()->buffer_map;
  if (any_of(map, [&](const auto& entry) { return entry.second->data == pointer; })) return true;
  const Tree& tree = *request.block.tree;
  return any_of(tree.blocks(), [&](int at) {
    const auto& own = tree.block_at(at).alloc_buffers;
    return any_of(own, [&](const Ref<Buffer>& buffer) { return buffer->data == pointer; });
  });
}

/// The copy is of all elements, which nothing changes, and what is behind a pointer is read only: whatever the reader
/// looks at, the copy has it.
bool holds_everything(const State& state, const CacheReadRequest& request, const Copy& copy, int reader) {
  const Tree& tree = *request.block.tree;
  bool good = request.writer == Tree::kNone && copy.same_layout();
  analysis::for_each_access(tree.block_ref(reader), analysis::Nested::kEnter, [&](const analysis::Access& access) {
    if (access.form == analysis::Access::Form::kView) return;  // accesses through the view follow
    bool same = access.pointer == copy.original->data ||
                (access.named.defined() && tree.same_memory(access.region()->buffer, copy.original));
    bool known = same || access.named.defined() || is_data_of_buffer(state, request, access.pointer);
    good &= known && !(same && access.writes);
  });
  return good;
}

}  // namespace

Result<Plan> plan(const State& state, const CacheRead& cache) {
  TW_TRY(read, cached_read(state, cache.block, cache.read_buffer_index, cache.storage_scope,
                           {"cache_read/P1", "cache_read/P2"}));
  const Place& block = read.block;
  const Tree& tree = *block.tree;
  CacheReadRequest request{block, read.scope, read.position, Tree::kNone, {}};
  const Ref<Buffer>& buffer = read.region->buffer;
  const analysis::Scope& scope = analysis::Scope::of(tree, request.scope);
  TW_RETURN_IF_ERROR(require_only_blocks(block, request.scope, "cache_read/P6"));
  TW_RETURN_IF_ERROR(require_one_name(block, request.scope, buffer, "cache_read/P3"));
  TW_TRY(writer, find_writer(request, scope, buffer));
  TW_TRY(readers, find_consumers(state, cache, request, scope, buffer, writer));
  request.readers = readers;
  if (writer <= block.at) request.writer = writer;
  TW_TRY(chosen, choose_copy(state, cache, request));
  const auto& [place, copy] = chosen;
  TW_RETURN_IF_ERROR(check_pointers(tree, request.readers, copy, "cache_read/P4"));
  TW_RETURN_IF_ERROR(require_kept_shape(tree, place.scope, copy.cache, "cache_read/P4"));

  Ref<Block> copy_block;
  TreeEdit edit(tree);
  place_copy(edit, place, copy, copy_nest(copy, true, &copy_block));
  for (int reader : request.readers) {
    edit.change_realize(reader, [&](BlockRealize& realize) {
      realize.block = with_axes_of(realize.block, redirect(realize.block, copy, true, false));
    });
  }
  Plan plan = give_loops(block.func, with_regions_around(tree, edit.finish(), copy_block->id.value), {});
  const Tree& after = Tree::of(plan.root);
  int copier = after.block(copy_block->id.value);
  std::optional<analysis::Obstacle> obstacle;
  if (request.writer != Tree::kNone) obstacle = analysis::why_inputs_incomplete(after, copier);
  for (size_t i = 0; i < request.readers.size() && !obstacle; ++i) {
    int reader = after.block(tree.block_at(request.readers[i]).id.value);
    if (holds_everything(state, request, copy, request.readers[i])) continue;
    obstacle = analysis::why_not_covered(after, copier, reader, copy.cache, copy.whole());
  }
  if (obstacle)
    return refuse("cache_read/P4", *obstacle, "cache before the loops of the writer and the readers are changed");
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, "cache_read/P9"));
  plan.outputs.push_back(Handle::block(block.func, *copy_block));
  plan.recorded = recorded_with(cache, &CacheRead::read_buffer_index, request.position);
  return plan;
}

}  // namespace tilewright::schedule
