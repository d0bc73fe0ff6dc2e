#include "schedule/execution.h"

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/independence.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "schedule/edit.h"
#include "schedule/ownership.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::schedule {
namespace {

std::string reduction_hint(analysis::Lacks lacks) {
  const std::string spatial = "take a loop that drives spatial axes only";
  switch (lacks) {
    case analysis::Lacks::kOperation:
      return spatial +
             ", or write the update as a sum, product, minimum or maximum of the element and something else, which "
             "lanes may put together in the end";
    case analysis::Lacks::kSingleSteps:
      return spatial + ", or spread the reduction before it is blockized or tensorized";
    case analysis::Lacks::kAllSteps:
      return spatial + ", or split the reduction first, so that the loop drives nothing else and takes each step once";
    default:
      return spatial +
             "; rfactor() over this loop gives each iteration a partial result of its own, whose loop then is spatial";
  }
}

Diagnostic refuse_conflict(const ExecutionCodes& codes, const analysis::Dependent& problem) {
  switch (problem.conflict) {
    case analysis::Conflict::kBareStatement:
      return refuse(codes.bare_statement, problem.obstacle,
                    "put it into a block, so that the script says what it reads and writes");
    case analysis::Conflict::kOtherBlock:
      return refuse(
          codes.other_block, problem.obstacle,
          "what stands below has to be blocks whose instances are independent: decompose_reduction() takes a "
          "start apart, T.reads and T.writes say what a call touches; steps that have an order (T.axis.opaque) "
          "stand in a loop inside of a block over the other axes, which blockize() makes");
    case analysis::Conflict::kReduction:
      return refuse(codes.reduction, problem.obstacle, reduction_hint(problem.lacks));
    case analysis::Conflict::kWrite:
      return refuse(codes.write, problem.obstacle,
                    "take a loop whose iterations write elements of their own; a buffer that each iteration fills for "
                    "itself may be computed inside (compute_at)");
    case analysis::Conflict::kRead:
      return refuse(codes.read, problem.obstacle,
                    "let each iteration compute what it reads (compute_at), or take a loop further out");
  }
  return {};
}

/// Whether iterations of a parallel loop may come to share a buffer in main memory, which they owned: if that loop is
/// around this one, or inside of it. Lanes inside keep buffers to their iteration.
bool may_share(const Tree& tree, int at, ForKind kind) {
  bool allocated = any_of(tree.blocks(), [&](int block) {
    const auto& own = tree.block_at(block).alloc_buffers;
    return any_of(own, [](const Ref<Buffer>& buffer) { return memory_scope(buffer->scope()).rank == 0; });
  });
  for (int other = 0; allocated && other < tree.size(); ++other) {
    if (other == at || !tree[other].is_loop) continue;
    bool nested = tree.contains(at, other) || (kind != ForKind::kVectorized && tree.contains(other, at));
    if (nested && tree.for_at(other).kind == ForKind::kParallel) return true;
  }
  return false;
}

/// A block that reads, from memory that threads around share, what other threads write below or in front of the loop.
/// They wait for one another only where all of them come by at the same time: not within iterations that run side by
/// side. What was covered before no longer is.
std::optional<analysis::Obstacle> why_threads_no_longer_wait(const Tree& before, const Tree& after, int at) {
  std::vector<int> threads;
  for (int loop : before.loops_above(at)) {
    if (analysis::thread_axis(before.for_at(loop))) threads.push_back(loop);
  }
  if (threads.empty()) return std::nullopt;
  for (int writer : before.blocks()) {
    if (before[writer].scope != before[at].scope) continue;
    for (const Ref<BufferRegion>& write : before.block_at(writer).writes) {
      const Ref<Buffer>& buffer = write->buffer;
      auto joins = [&](int loop) {
        return before.contains(loop, writer) && analysis::joins_threads(before.for_at(loop), buffer);
      };
      if (none_of(threads, joins)) continue;
      for (int reader : before.blocks()) {
        if (reader <= writer || before[reader].scope != before[at].scope) continue;
        if (!before.contains(at, writer) && !before.contains(at, reader)) continue;
        if (!before.touches(analysis::BlockFacts::of(before.block_ref(reader)).live_in, buffer)) continue;
        if (analysis::why_not_covered(before, writer, reader, buffer)) continue;
        if (auto obstacle = analysis::why_not_covered(after, writer, reader, buffer)) return obstacle;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Plan> set_kind(const State& state, LoopRV rv, ForKind kind, const ExecutionCodes& codes,
                      const std::string& thread_axis) {
  TW_TRY(place, state.find(rv));
  For loop = place.loop();
  loop.thread_binding = {};
  const Tree* tree = place.tree;
  int at = place.at;
  Ref<Block> unbound;  // exchange between threads of a team is local to the team
  if (place.loop().thread_binding.defined()) {
    loop.kind = ForKind::kSerial;
    TreeEdit edit(*place.tree);
    edit.replace(place.at, make<For>(loop, place.node().span()));
    unbound = edit.finish();
    tree = &Tree::of(unbound);
    at = tree->loop(loop.loop_var);
  }
  if (auto problem = analysis::why_dependent(*tree, at, {kind, ThreadAxis::parse(thread_axis)})) {
    // One iteration is in order with itself: a thread may run steps that have an order.
    const bool has_order = problem->conflict == analysis::Conflict::kOtherBlock && is_const_int(loop.extent, 1);
    if (!has_order) return refuse_conflict(codes, *problem);
  }
  loop.kind = kind;
  if (kind == ForKind::kThreadBinding) {
    loop.thread_binding = make<IterVar>({.dom = {},
                                         .var = var(thread_axis, loop.loop_var.dtype()),
                                         .iter_type = IterType::kThreadIndex,
                                         .thread_tag = thread_axis});
  }
  TreeEdit edit(*place.tree);
  edit.replace(place.at, make(std::move(loop), place.node().span()));
  Plan plan = give_loops(place.func, edit.finish(), {});
  if (kind == ForKind::kParallel || kind == ForKind::kVectorized) {
    if (auto obstacle = why_threads_no_longer_wait(*tree, Tree::of(plan.root), at)) {
      return refuse(codes.read, *obstacle,
                    "threads of a team synchronize only outside of loops whose iterations run concurrently: "
                    "take a loop around those that are bound to threads, or one inside of a block");
    }
  }
  if (may_share(*place.tree, place.at, kind)) TW_RETURN_IF_ERROR(check_owned_buffers(state, plan));
  return plan;
}

}  // namespace tilewright::schedule
