// Carries out what rules wrote on root blocks: meta_schedule.parallel = the largest number of jobs,
// meta_schedule.vectorize = the largest number of lanes, meta_schedule.unroll_explicit or _implicit = the limit for
// unrolling.
//
//   for each block directly below:
//     outer loops are fused and made parallel, up to the one with which they are more than the number of jobs
//     inner loops are fused and vectorized, as long as they are no more than the number of lanes and access memory
//     contiguously
//     where both could have all loops: one loop, split into [rest, lanes]
//     the outermost loop of a block that reduces gets the limit for unrolling
//
// Loops that are not spatial, or not serial, stay unchanged, as do those with dependent iterations.
#include <algorithm>
#include <limits>

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_child_blocks.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/parallel.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/unannotate.h"
#include "schedule/primitives/vectorize.h"
#include "search/loop_kinds.h"
#include "search/memory_steps.h"
#include "search/postprocs/postprocs.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using analysis::Tree;
using namespace schedule;  // NOLINT: instructions

constexpr const char* kParallel = "meta_schedule.parallel";
constexpr const char* kVectorize = "meta_schedule.vectorize";
constexpr const char* kUnrollExplicit = "meta_schedule.unroll_explicit";
constexpr const char* kUnrollImplicit = "meta_schedule.unroll_implicit";

struct Wishes {
  std::optional<int64_t> jobs, lanes, unroll_explicit, unroll_implicit;
  bool any() const { return jobs || lanes || unroll_explicit || unroll_implicit; }
};

Wishes wishes_of(const Block& block) {
  return {integer_annotation(block.annotations, kParallel), integer_annotation(block.annotations, kVectorize),
          integer_annotation(block.annotations, kUnrollExplicit),
          integer_annotation(block.annotations, kUnrollImplicit)};
}

struct Nest {
  const Tree& tree;
  int block;
  std::vector<int> loops;  ///< around the block, outermost first

  const For& loop(size_t i) const { return tree.for_at(loops[i]); }
  bool is_spatial(size_t i) const { return loop_use(tree, loops[i]) == LoopUse::kSpatial; }
  std::optional<int64_t> extent(size_t i) const { return const_int(loop(i).extent); }
};

using Steps = std::vector<std::optional<int64_t>>;

/// Returns how many inner loops go through the memory of one access as one loop would.
int64_t contiguous_loops(const Nest& nest, const Steps& strides) {
  int64_t count = 0;
  std::optional<size_t> inner;  // the last loop that moves on in the buffer
  for (size_t i = strides.size(); i-- > 0; ++count) {
    if (strides[i] == 0) continue;
    if (!inner) {
      if (strides[i] != 1 && count != 0) break;
      if (!strides[i]) return count + 1;
    } else {
      auto extent = nest.extent(*inner);
      if (!extent || !strides[i] || *strides[i] != *strides[*inner] * *extent) break;
    }
    inner = i;
  }
  return count;
}

int64_t contiguous_loops(const Nest& nest) {
  const BlockRealize& realize = *nest.tree.realize_at(nest.block);
  VarMap bindings;
  for (size_t i : indices_of(realize.iter_values)) {
    bindings.emplace(realize.block->iter_vars[i]->var, realize.iter_values[i]);
  }
  std::vector<Ref<For>> loops;
  for (int at : nest.loops) loops.push_back(nest.tree.stmt(at).borrow<For>());
  int64_t count = std::numeric_limits<int64_t>::max();
  for (const auto* regions : {&realize.block->reads, &realize.block->writes}) {
    for (const Ref<BufferRegion>& access : *regions) {
      std::vector<Expr> indices;
      for (const Ref<Range>& range : access->region) indices.push_back(substitute(range->min, bindings));
      count = std::min(count, contiguous_loops(nest, memory_steps(*access->buffer, indices, loops)));
    }
  }
  return count;
}

/// Number of outer loops that become parallel, and of inner loops that are vectorized.
struct Shares {
  size_t parallel = 0, vectorized = 0;
  bool one_loop = false;  ///< both could have all: they become one, if that is accepted
};

size_t parallel_loops(const Nest& nest, int64_t jobs) {
  size_t count = 0;
  int64_t product = 1;
  for (size_t i : indices_of(nest.loops)) {
    auto extent = nest.extent(i);
    if (!nest.is_spatial(i) || !is_plain(nest.loop(i)) || !extent) break;
    ++count;
    product *= *extent;
    if (product > jobs || !has_single_body(nest.loop(i))) break;
  }
  return product == 1 ? 0 : count;
}

size_t vectorized_loops(const Nest& nest, int64_t lanes, int64_t contiguous) {
  size_t count = 0;
  int64_t product = 1;
  for (size_t i = nest.loops.size(); i-- > 0 && static_cast<int64_t>(count) < contiguous;) {
    auto extent = nest.extent(i);
    if (!nest.is_spatial(i) || !is_plain(nest.loop(i)) || !has_single_body(nest.loop(i)) || !extent) break;
    product *= *extent;
    if (product > lanes) break;
    ++count;
  }
  return product == 1 ? 0 : count;
}

bool all_fusible(const Nest& nest) {
  for (size_t i : indices_of(nest.loops)) {
    if (!nest.is_spatial(i) || !is_plain(nest.loop(i)) || !has_single_body(nest.loop(i)) || !nest.extent(i)) {
      return false;
    }
  }
  return true;
}

Shares shares_of(const Nest& nest, const Wishes& wishes) {
  size_t all = nest.loops.size();
  Shares shares;
  int64_t contiguous = contiguous_loops(nest);
  if (wishes.jobs) shares.parallel = parallel_loops(nest, *wishes.jobs);
  if (wishes.lanes) shares.vectorized = vectorized_loops(nest, *wishes.lanes, contiguous);
  if (wishes.jobs && wishes.lanes) {
    shares.one_loop = shares.parallel > 0 && contiguous >= static_cast<int64_t>(all) && all_fusible(nest);
    shares.parallel = std::min(shares.parallel, all - shares.vectorized);
  }
  return shares;
}

/// Does the steps, or none of them where one is refused.
template <class Steps>
bool try_all(Schedule& schedule, Steps steps) {
  Schedule trial = schedule;
  if (Status done = steps(trial); !done.ok()) return false;
  schedule = std::move(trial);
  return true;
}

Result<LoopRV> fused(Schedule& schedule, const std::vector<LoopRV>& loops, size_t from, size_t count) {
  return schedule.apply(Fuse{{{loops.begin() + from, loops.begin() + from + count}}});
}

/// Returns the outermost loop afterwards.
LoopRV carry_out(Schedule& schedule, const std::vector<LoopRV>& loops, Shares shares, int64_t lanes) {
  LoopRV outermost = loops[0];
  size_t all = loops.size();
  if (shares.one_loop) {
    bool done = try_all(schedule, [&](Schedule& trial) -> Status {
      TW_TRY(one, fused(trial, loops, 0, all));
      TW_TRY(split, trial.apply(Split{one, {{None{}, lanes}}}));
      TW_RETURN_IF_ERROR(trial.apply(Parallel{split[0]}));
      TW_RETURN_IF_ERROR(trial.apply(Vectorize{split[1]}));
      outermost = split[0];
      return Ok{};
    });
    if (done) return outermost;
  }
  if (shares.parallel > 0) {
    try_all(schedule, [&](Schedule& trial) -> Status {
      TW_TRY(outer, fused(trial, loops, 0, shares.parallel));
      TW_RETURN_IF_ERROR(trial.apply(Parallel{outer}));
      outermost = outer;
      return Ok{};
    });
  }
  if (shares.vectorized > 0) {
    try_all(schedule, [&](Schedule& trial) -> Status {
      TW_TRY(inner, fused(trial, loops, all - shares.vectorized, shares.vectorized));
      TW_RETURN_IF_ERROR(trial.apply(Vectorize{inner}));
      if (shares.vectorized == all) outermost = inner;
      return Ok{};
    });
  }
  return outermost;
}

bool reduces(const Block& block) { return !all_of(block.iter_vars, analysis::is_data_parallel); }

Status rewrite_block(Schedule& schedule, BlockRV block, const Wishes& wishes) {
  TW_TRY(loops, schedule.apply(GetLoops{block}));
  if (loops.empty()) return Ok{};
  TW_TRY(place, schedule.state().find(block));
  Shares shares = shares_of({*place.tree, place.at, place.tree->loops_above(place.at)}, wishes);
  LoopRV outermost = carry_out(schedule, loops, shares, wishes.lanes.value_or(1));
  TW_TRY(now, schedule.state().find(block));
  if (!(wishes.unroll_explicit || wishes.unroll_implicit) || !reduces(now.block())) return Ok{};
  TW_TRY(loop, schedule.state().find(outermost));
  // Another block below the same loop has set it already.
  if (loop.loop().annotations.has("pragma_auto_unroll_max_step")) return Ok{};
  int64_t limit = wishes.unroll_explicit ? *wishes.unroll_explicit : *wishes.unroll_implicit;
  TW_RETURN_IF_ERROR(schedule.apply(Annotate{outermost, "pragma_auto_unroll_max_step", {limit}}));
  TW_RETURN_IF_ERROR(
      schedule.apply(Annotate{outermost, "pragma_unroll_explicit", {int64_t{wishes.unroll_explicit.has_value()}}}));
  return Ok{};
}

Status rewrite_root(Schedule& schedule, const FoundBlock& root, const Wishes& wishes) {
  TW_TRY(rv, handle_of(schedule, root.func, *root.block));
  if (wishes.jobs) TW_RETURN_IF_ERROR(schedule.apply(Unannotate{rv, kParallel}));
  if (wishes.lanes) TW_RETURN_IF_ERROR(schedule.apply(Unannotate{rv, kVectorize}));
  if (wishes.unroll_explicit) TW_RETURN_IF_ERROR(schedule.apply(Unannotate{rv, kUnrollExplicit}));
  if (wishes.unroll_implicit) TW_RETURN_IF_ERROR(schedule.apply(Unannotate{rv, kUnrollImplicit}));
  TW_TRY(children, schedule.apply(GetChildBlocks{rv}));
  for (BlockRV child : children) TW_RETURN_IF_ERROR(rewrite_block(schedule, child, wishes));
  return Ok{};
}

}  // namespace

Result<bool> RewriteParallelVectorizeUnroll::apply(Schedule& schedule) const {
  for (const FoundBlock& found : blocks_of(schedule.state())) {
    TW_TRY(tree, schedule.state().tree(found.func));
    if (tree->block(found.block->id.value) != 0) continue;  // not the root
    Wishes wishes = wishes_of(*found.block);
    if (wishes.any()) TW_RETURN_IF_ERROR(rewrite_root(schedule, found, wishes));
  }
  return true;
}

}  // namespace tilewright::search
