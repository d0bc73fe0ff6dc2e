// Move a producer under a loop of its consumers, and compute there only what they need.
//
//   Before                                    After  sch.compute_at(B, x)
//   B = T.alloc_buffer((16, 16))              B = T.alloc_buffer((16, 16))
//   for i, j in T.grid(16, 16):               for x in range(16):
//     with T.block("B"):                        for ax0 in range(16):
//       vi, vj = T.axis.remap("SS", [i, j])       with T.block("B"):
//       B[vi, vj] = A[vi, vj] + 1.0                 vi, vj = T.axis.remap("SS", [x, ax0])
//   for x, y in T.grid(16, 16):                     B[vi, vj] = A[vi, vj] + 1.0
//     with T.block("C"):                        for y in range(16):
//       vi, vj = T.axis.remap("SS", [x, y])       with T.block("C"):
//       C[vi, vj] = B[vi, vj] * 2.0                 vi, vj = T.axis.remap("SS", [x, y])
//                                                   C[vi, vj] = B[vi, vj] * 2.0
//
// Requires  P1 the block is complete or a regular reduction
//           P2 it and the loop are in one scope, and the loop is not around it
//           P3 it is the only writer of its buffers, which are allocated in the scope, and nothing before reads them
//           P4 all its consumers are under the loop, and it has some
//           P5 what it reads is complete where it stands and where it goes
//           P6 what the consumers read is complete afterwards
//           P7 the index is possible
//           P8 instances that did not run before can be skipped, or do no harm
//           P9 parallel loops around stay independent
#include <algorithm>

#include "analysis/binding_reads.h"
#include "analysis/may_fail.h"
#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "schedule/move_hints.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/compute_inline.h"
#include "schedule/region_copy.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

constexpr MoveCodes kComputeAtCodes = {.role = "compute_at/P1",
                                       .scope = "compute_at/P2",
                                       .writer = "compute_at/P3",
                                       .index = "compute_at/P7",
                                       .instances = "compute_at/P8",
                                       .inputs = "compute_at/P5",
                                       .results = "compute_at/P6",
                                       .execution = "compute_at/P9"};

/// Nobody but blocks of the scope sees what the block writes.
Status check_local(const Move& move, const analysis::Scope& scope, int self) {
  if (!scope.is_output(self)) return Ok{};
  return refuse("compute_at/P3",
                describe(move.block) + " is an output block: what it writes is not allocated in the scope", move.block,
                "move its producers to it, or move it to its producers with reverse_compute_at");
}

/// The region with all of the dimensions that data select which the producer writes itself: before, they are not there.
arith::Region known_before(arith::Region region, const Place& producer, const Ref<Buffer>& buffer) {
  auto is_own = [&](const Ref<BufferRegion>& read) {
    return producer.tree->touches(producer.block().writes, read->buffer);
  };
  for (size_t d : indices_of(region)) {
    std::vector<Ref<BufferRegion>> reads;
    analysis::add_single_reads(region[d]->min, reads);
    analysis::add_single_reads(region[d]->extent, reads);
    if (any_of(reads, is_own)) region[d] = range_of(buffer->shape[d]);
  }
  return region;
}

/// Returns the loops over an index of the region which is an axis of the producer: if such a loop has no iteration, the
/// axis has no value either.
std::vector<int> loops_of_axes(const Tree& tree, const std::vector<int>& loops, const Block& producer,
                               const Ref<BufferRegion>& write, const arith::Region& region) {
  std::vector<int> result;
  for (int at : loops) {
    for (size_t d : indices_of(region)) {
      const Expr &index = write->region[d]->min, &value = region[d]->min;
      const bool is_axis = any_of(producer.iter_vars, [&](const Ref<IterVar>& axis) { return axis->var == index; });
      const bool one_each = is_const_int(write->region[d]->extent, 1) && is_const_int(region[d]->extent, 1);
      if (is_axis && one_each && value == tree.for_at(at).loop_var) result.push_back(at);
    }
  }
  return result;
}

}  // namespace

Result<Plan> plan(const State& state, const ComputeAt& compute) {
  TW_TRY(block, state.find(compute.block));
  const Handle& target = state.handle(compute.loop.index);
  if (target.is_root_mark()) return Plan{};
  if (target.is_inline_mark()) return plan(state, ComputeInline{compute.block});
  TW_TRY(loop, state.find(compute.loop));
  Move move{block, loop, compute.preserve_unit_loops, compute.index, 0, 0, kComputeAtCodes, true};
  const Tree& tree = *block.tree;
  TW_RETURN_IF_ERROR(check_same_scope(move));
  TW_RETURN_IF_ERROR(check_block_role(move));
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[block.at].scope);
  int self = scope.child(block.block().id.value);
  TW_RETURN_IF_ERROR(check_local(move, scope, self));
  TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, kComputeAtCodes.writer, false));

  std::vector<int> statements = statements_of(tree, loop.at);
  move.last = static_cast<int>(statements.size());
  auto analyzer = analysis::analyzer_above(tree, loop.at);
  analysis::assume_runs_around(analyzer, tree, loop.at);
  std::optional<AxisSets> needed;
  auto position = [&](int child) { return scope.position(tree, child); };
  for (int child : scope.consumers(self)) {
    int consumer = position(child);
    int statement = statement_with(tree, statements, consumer);
    if (statement < 0) {
      return refuse("compute_at/P4",
                    "the step requires all the consumers under the loop: " + describe_block(tree.block_at(consumer)) +
                        " is not under " + describe(loop),
                    {block.node(), loop.node(), tree.stmt(consumer)}, "take a loop that is around all its consumers");
    }
    move.last = std::min(move.last, statement);
    std::vector<int> below = tree.loops_above(consumer);
    std::erase_if(below, [&](int at) { return at <= loop.at; });
    std::vector<Ref<BufferRegion>> reads = tree.block_at(consumer).reads;
    for (Ref<BufferRegion>& read : analysis::binding_reads(tree, consumer)) reads.push_back(std::move(read));
    std::erase_if(reads, [&](const auto& read) { return !tree.touches(block.block().writes, read->buffer); });
    const bool is_only_read = reads.size() == 1 && scope.consumers(self).size() == 1;
    for (const Ref<BufferRegion>& read : reads) {
      for (const Ref<BufferRegion>& write : block.block().writes) {
        if (write->buffer != read->buffer) continue;
        if (auto obstacle = why_region_unknown(tree, consumer, read->buffer, true)) {
          return refuse(kComputeAtCodes.inputs, *obstacle, kInputsIncomplete);
        }
        // The region covers all threads that share the buffer: they compute elements for one another.
        std::vector<int> varying = analysis::joined_loops(tree, loop.at, read->buffer);
        append_range(varying, below);
        auto around = analysis::analyzer_above(tree, loop.at, varying);
        analysis::assume_runs_around(around, tree, loop.at);
        arith::Region region =
            known_before(analysis::bound_region(*tree.realize_at(consumer), read), block, read->buffer);
        analysis::SureReads sure, at_elements;
        std::vector<int> emptying;
        sure.add(tree, loop.at, consumer, analyzer);
        if (is_only_read) emptying = loops_of_axes(tree, below, block.block(), write, region);
        at_elements.add(tree, loop.at, consumer, analyzer, emptying);
        arith::Box box = analysis::without_failing_bounds(analysis::relaxed(region, tree, varying, around), analyzer,
                                                          sure, at_elements);
        AxisSets sets = solve_axes(block.block(), write, box, Fit::kTouch, analyzer);
        needed = needed ? arith::unite(*needed, sets, analyzer) : sets;
      }
    }
  }
  if (!needed) {
    return refuse("compute_at/P4", describe(block) + " has no consumers", block,
                  "compute_at moves a block to what reads its results; reverse_compute_at to what it reads");
  }
  for (int child : scope.producers(self)) {
    move.first = std::max(move.first, statement_with(tree, statements, position(child)) + 1);
  }
  return finish_move(move, *needed);
}

}  // namespace tilewright::schedule
