// Samples a loop that a block may be computed at, among those where that can pay.
//
// Possible are: to inline the block, to leave it, and the loops of its first consumer down to the lowest that holds all
// consumers, but for loops of one iteration, spatial ones below others and others below the last spatial one; each is
// tried.
//
// Requires  P1 the block is not the root
//           P2 the decision is at least -2

#include "schedule/primitives/sample_compute_location.h"
#include "analysis/block_facts.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "schedule/compute_locations.h"
#include "schedule/primitive.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/compute_inline.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The loop drives no axis of a block below other than spatial ones.
bool is_spatial(const Tree& tree, int loop) {
  for (int block : tree.child_blocks(loop)) {
    const BlockRealize& realize = *tree.realize_at(block);
    for (size_t i : indices_of(realize.iter_values)) {
      if (analysis::is_data_parallel(realize.block->iter_vars[i])) continue;
      if (uses_var(realize.iter_values[i], tree.for_at(loop).loop_var)) return false;
    }
  }
  return true;
}

/// The loops of the first consumer, as far as they are around all consumers.
std::vector<int> loops_around_consumers(const Tree& tree, const std::vector<int>& consumers) {
  int around = consumers.size() == 1 ? tree[consumers[0]].parent : tree.common_ancestor(consumers);
  while (tree[around].node->kind == Kind::kSeqStmt) around = tree[around].parent;
  if (!tree[around].is_loop) return {};
  std::vector<int> loops = tree.loops_above(consumers[0]);
  std::erase_if(loops, [&](int loop) { return loop > around; });
  return loops;
}

bool can_compute_at(const State& state, const BlockRV& block, const Handle& loop) {
  State trial = state;
  Plan given;
  given.outputs = {loop};
  LoopRV rv{trial.commit(std::move(given))[0]};
  return plan(trial, ComputeAt{.block = block, .loop = rv, .preserve_unit_loops = true}).ok();
}

struct Candidate {
  int64_t number;
  Handle handle;
};

std::vector<Candidate> candidates_for(const State& state, const BlockRV& rv, const Place& block) {
  const Tree& tree = *block.tree;
  std::vector<Candidate> result;
  if (plan(state, ComputeInline{rv}).ok()) result.push_back({-2, Handle::inline_mark(block.func)});
  result.push_back({-1, Handle::root_mark(block.func)});
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[block.at].scope);
  std::vector<int> consumers;
  for (int child : scope.consumers(scope.child(block.block().id.value))) {
    consumers.push_back(scope.position(tree, child));
  }
  if (consumers.empty()) return result;
  std::vector<int> loops = loops_around_consumers(tree, consumers);
  int last_spatial = -1;
  for (size_t i : indices_of(loops)) {
    if (is_spatial(tree, loops[i])) last_spatial = static_cast<int>(i);
  }
  bool below_others = false;
  for (size_t i : indices_of(loops)) {
    const For& loop = tree.for_at(loops[i]);
    if (is_const_int(loop.extent, 1)) continue;
    if (is_spatial(tree, loops[i])) {
      if (below_others) break;
    } else {
      below_others = true;
      if (static_cast<int>(i) > last_spatial) break;
    }
    Handle handle = Handle::loop(block.func, loop.loop_var);
    if (can_compute_at(state, rv, handle)) result.push_back({static_cast<int64_t>(i), handle});
  }
  return result;
}

}  // namespace

Result<std::vector<int64_t>> compute_locations(const State& state, BlockRV rv) {
  TW_TRY(block, state.find(rv));
  std::vector<int64_t> numbers;
  if (block.tree->realize_at(block.at) == nullptr) return numbers;
  for (const Candidate& candidate : candidates_for(state, rv, block)) numbers.push_back(candidate.number);
  return numbers;
}

Result<Plan> plan(const State& state, const SampleComputeLocation& sample) {
  TW_TRY(block, state.find(sample.block));
  if (block.tree->realize_at(block.at) == nullptr) {
    return refuse("sample_compute_location/P1", "the root block cannot be computed anywhere else", block,
                  "name a block inside of it");
  }
  if (sample.decision.value && *sample.decision.value < -2) {
    return refuse(
        "sample_compute_location/P2",
        "decision " + std::to_string(*sample.decision.value) + " is not a place to compute " + describe(block), {},
        "-2 inlines, -1 leaves the block where it is, from 0 on loops are counted");
  }
  std::vector<Candidate> candidates = candidates_for(state, sample.block, block);
  Plan plan;
  plan.func = block.func;
  size_t chosen = 0;
  if (sample.decision.value) {
    bool lower = false;
    for (size_t i : indices_of(candidates)) {
      if (candidates[i].number > *sample.decision.value) break;
      chosen = i;
      lower = true;
    }
    if (!lower) chosen = candidates[0].number == -1 ? 0 : 1;
  } else {
    Random random = state.random();
    // One number of the stream, however many candidates there are.
    chosen = static_cast<size_t>(random.next() % candidates.size());
    plan.random = random;
  }
  plan.outputs.push_back(candidates[chosen].handle);
  SampleComputeLocation recorded = sample;
  recorded.decision.value = candidates[chosen].number;
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
