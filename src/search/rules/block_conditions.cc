#include "search/rules/block_conditions.h"

#include <unordered_map>
#include <unordered_set>

#include "analysis/block_facts.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/reorder.h"
#include "search/loop_kinds.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

struct Shifted {
  NodeRef variable;  ///< null: the expression is something else
  bool shifted = false;
};

/// Matches v, v + 3, 3 + v, v - 3.
Shifted variable_with_shift(const Expr& e) {
  if (e.is<Var>()) return {e, false};
  if (const auto* add = e.as<Add>()) {
    if (add->a.is<Var>() && const_int(add->b)) return {add->a, true};
    if (add->b.is<Var>() && const_int(add->a)) return {add->b, true};
  }
  if (const auto* sub = e.as<Sub>(); sub && sub->a.is<Var>() && const_int(sub->b)) return {sub->a, true};
  return {};
}

std::vector<Place> places(const Place& block, const std::vector<int>& children, const analysis::Scope& scope) {
  std::vector<Place> result;
  for (int child : children) {
    result.push_back({block.func, block.tree, scope.position(*block.tree, child)});
  }
  return result;
}

const analysis::Scope& scope_of(const Place& block) {
  return analysis::Scope::of(*block.tree, (*block.tree)[block.at].scope);
}

/// Whether each loop contains nothing but the next one, and the last loop nothing but the block.
bool is_directly_inside(const Tree& tree, const std::vector<int>& loops, int block) {
  for (size_t i : indices_of(loops)) {
    int inner = i + 1 < loops.size() ? loops[i + 1] : block;
    if (tree.for_at(loops[i]).body != tree.stmt(inner)) return false;
  }
  return true;
}

}  // namespace

ReadWritePattern read_write_pattern(const BufferRegion& read, const BufferRegion& write) {
  std::unordered_map<NodeRef, int> position;
  for (size_t i : indices_of(write.region)) {
    if (!const_int(write.region[i]->extent) || !write.region[i]->min.is<Var>()) return {};
    position.emplace(write.region[i]->min, static_cast<int>(i));
  }
  ReadWritePattern result{.exists = true, .ordered = true, .no_const_read = true, .no_shift_read = true};
  std::vector<int> count(write.region.size(), 0);
  int last = -1;
  for (const Ref<Range>& range : read.region) {
    if (!const_int(range->extent)) return {};
    if (const_int(range->min)) {
      result.no_const_read = false;
      continue;
    }
    Shifted index = variable_with_shift(range->min);
    auto* found = index.variable.defined() ? find_value(position, index.variable) : nullptr;
    if (!found) return {};
    if (index.shifted) result.no_shift_read = false;
    if (*found < last) result.ordered = false;
    last = *found;
    ++count[last];
  }
  result.surjective = all_of(count, [](int n) { return n >= 1; });
  result.injective = all_of(count, [](int n) { return n <= 1; });
  return result;
}

bool is_spatial_block(const Block& block) { return all_of(block.iter_vars, analysis::is_data_parallel); }

bool is_spatial_function(const Tree& tree) {
  return all_of(tree.blocks(), [&](int at) { return is_spatial_block(tree.block_at(at)); });
}

bool has_trivial_binding(const Place& block) {
  const BlockRealize* realize = block.tree->realize_at(block.at);
  std::vector<int> loops = block.tree->loops_above(block.at);
  if (!realize || loops.size() != realize->iter_values.size()) return false;
  for (size_t i : indices_of(loops)) {
    if (realize->iter_values[i] != block.tree->for_at(loops[i]).loop_var) return false;
  }
  return true;
}

bool is_tiled(const Block& block) { return block.annotations.has("meta_schedule.tiling_structure"); }

bool is_write_cache(const Block& block) {
  if (block.writes.size() != 1) return false;
  return all_of(block.reads, [&](const Ref<BufferRegion>& read) {
    ReadWritePattern pattern = read_write_pattern(*read, *block.writes[0]);
    return pattern.injective && pattern.ordered && pattern.no_const_read && pattern.no_shift_read;
  });
}

bool is_complete_block(const Place& block) {
  return analysis::BlockFacts::of(block.tree->block_ref(block.at)).role == analysis::BlockRole::kComplete;
}

bool is_reduction_block(const Place& block) {
  return analysis::BlockFacts::of(block.tree->block_ref(block.at)).role == analysis::BlockRole::kReduction;
}

std::vector<Place> consumers_of(const Place& block) {
  const analysis::Scope& scope = scope_of(block);
  return places(block, scope.consumers(scope.child(block.block().id.value)), scope);
}

std::vector<Place> producers_of(const Place& block) {
  const analysis::Scope& scope = scope_of(block);
  return places(block, scope.producers(scope.child(block.block().id.value)), scope);
}

bool is_output_block(const Place& block) {
  const analysis::Scope& scope = scope_of(block);
  return scope.is_output(scope.child(block.block().id.value));
}

bool needs_multi_level_tiling(const Place& place) {
  const Block& block = place.block();
  if (is_tiled(block) || block.writes.size() != 1 || block.reads.empty() || is_spatial_block(block) ||
      !has_trivial_binding(place)) {
    return false;
  }
  std::vector<NodeRef> axes;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    bool is_unit = is_const_int(axis->dom->min, 0) && is_const_int(axis->dom->extent, 1);
    if (analysis::is_data_parallel(axis) && !is_unit) axes.push_back(axis->var);
  }
  std::unordered_set<NodeRef> buffers;
  bool reused = false;
  for (const Ref<BufferRegion>& read : block.reads) {
    if (!buffers.insert(read->buffer).second) return false;
    if (read->buffer == block.writes[0]->buffer) continue;
    for (const Ref<Range>& range : read->region) {
      if (!const_int(range->extent)) return false;
    }
    for (const NodeRef& axis : axes) {
      reused |= none_of(read->region, [&](const Ref<Range>& range) { return uses_var(range->min, axis); });
    }
  }
  return reused;
}

std::optional<LoopLengths> loop_lengths(const Place& block) {
  LoopLengths result;
  for (int loop : block.tree->loops_above(block.at)) {
    auto extent = const_int(block.tree->for_at(loop).extent);
    LoopUse use = loop_use(*block.tree, loop);
    if (!extent || use == LoopUse::kOther) return std::nullopt;
    (use == LoopUse::kSpatial ? result.spatial : result.reduction) *= *extent;
  }
  return result;
}

bool needs_split_reduction(const Place& place, int64_t max_parallel_extent) {
  if (!place.tree->realize_at(place.at) || !is_reduction_block(place) || !has_trivial_binding(place) ||
      is_tiled(place.block())) {
    return false;
  }
  std::vector<int> loops = place.tree->loops_above(place.at);
  bool reduces = any_of(loops, [&](int loop) { return loop_use(*place.tree, loop) == LoopUse::kReduction; });
  if (!reduces || !is_directly_inside(*place.tree, loops, place.at)) return false;
  std::optional<LoopLengths> lengths = loop_lengths(place);
  if (!lengths) return false;
  if (!needs_multi_level_tiling(place)) return lengths->reduction > 1;
  return lengths->spatial < lengths->reduction && lengths->spatial <= max_parallel_extent;
}

Result<FusedReduction> fuse_reduction_loops(Schedule& schedule, BlockRV block) {
  TW_TRY(loops, schedule.apply(GetLoops{block}));
  std::vector<LoopRV> order, reductions;
  for (LoopRV loop : loops) {
    TW_TRY(place, schedule.state().find(loop));
    bool is_spatial = loop_use(*place.tree, place.at) == LoopUse::kSpatial;
    (is_spatial ? order : reductions).push_back(loop);
  }
  FusedReduction result{{}, order.size()};
  append_range(order, reductions);
  if (order != loops) TW_RETURN_IF_ERROR(schedule.apply(Reorder{.ordered_loops = {order}}));
  result.loop = reductions.front();
  if (reductions.size() > 1) {
    TW_TRY(fused, schedule.apply(Fuse{.loops = {reductions}}));
    result.loop = fused;
  }
  return result;
}

std::vector<Factor> as_factors(const std::vector<std::optional<ExprRV>>& sampled) {
  std::vector<Factor> result;
  for (const auto& factor : sampled) result.push_back(factor ? Factor(*factor) : Factor(None{}));
  return result;
}

std::vector<double> equal_weights(size_t n) { return std::vector<double>(n, 1.0 / static_cast<double>(n)); }

}  // namespace tilewright::search
