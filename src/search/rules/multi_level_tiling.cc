#include "search/rules/multi_level_tiling.h"

#include <algorithm>

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/cache_read.h"
#include "schedule/primitives/cache_write.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_consumers.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/reverse_compute_at.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/split.h"
#include "search/rules/block_conditions.h"
#include "search/rules/target_limits.h"
#include "support/ranges.h"
#include "target/thread_axis.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// Copying global memory to shared memory while computing takes instructions that GPUs have from 8.0 on.
bool copies_asynchronously(const std::optional<Target>& target) {
  if (!target || !target->is_in(TargetSet::kGpu) || !target->arch.starts_with("sm_")) return false;
  return std::atoi(target->arch.c_str() + 3) >= 80;
}

/// Whether one load or store can access this many elements of the type.
bool is_vector_length(DataType dtype, int64_t length) {
  if (dtype == DataType::float_(32)) return length <= 4;
  if (dtype == DataType::float_(16)) return length == 1 || (length % 2 == 0 && length <= 8);
  if (dtype == DataType::int_(8)) return length <= 16;
  return true;
}

bool exceed(const std::vector<int64_t>& levels, size_t size) {
  return any_of(levels, [&](int64_t level) { return level < 1 || level > static_cast<int64_t>(size); });
}

/// The last loop of a level; where no loop has tiles there, that of the level around. None if there is none outside.
std::optional<LoopRV> last_loop(const TilingState& state, int64_t level) {
  for (size_t i = static_cast<size_t>(level); i-- > 0;) {
    if (!state.tiles[i].empty()) return state.tiles[i].back();
  }
  return std::nullopt;
}

/// Returns the tile levels in the annotation "meta_schedule.write_cache_level".
std::optional<std::vector<int64_t>> asked_levels(const Block& block) {
  NodeRef value = block.annotations.get("meta_schedule.write_cache_level");
  const List* list = value.as<List>();
  if (!list) return std::nullopt;
  std::vector<int64_t> levels;
  for (const NodeRef& item : list->items) {
    if (const IntImm* number = item.as<IntImm>()) levels.push_back(number->value);
  }
  return levels;
}

}  // namespace

Status MultiLevelTiling::check(const MultiLevelTilingOptions& options) {
  const std::string& structure = options.structure;
  bool has_both = structure.find('S') != std::string::npos && structure.find('R') != std::string::npos;
  if (!has_both || structure.find_first_not_of("SR") != std::string::npos) {
    return argument_error("multi_level_tiling/structure", "'" + structure + "' is not a structure of tiles",
                          "write a word of S (spatial loops) and R (reduction loops), such as \"SSRSRS\"");
  }
  if (exceed(options.reuse_read.levels, structure.size()) || exceed(options.reuse_write.levels, structure.size())) {
    return argument_error("multi_level_tiling/levels",
                          "reuse is set at a level that the structure '" + structure + "' does not have",
                          "levels count from 1");
  }
  if (options.reuse_read.requirement == ReuseType::Requirement::kMay) {
    return argument_error("multi_level_tiling/read-reuse", "what is read is copied or not, there is no choice",
                          "say \"must\" or \"no\", and give two rules for both");
  }
  for (const std::string& axis : options.tile_binds) {
    if (ThreadAxis::parse(axis)) continue;
    return argument_error("multi_level_tiling/tile-binds", "'" + axis + "' is not a thread axis",
                          "use blockIdx, threadIdx or vthread with .x, .y or .z");
  }
  if (const int64_t innermost = options.max_innermost_factor.value_or(-1); innermost != -1 && innermost < 1) {
    return argument_error(
        "multi_level_tiling/innermost",
        "the innermost tile has " + std::to_string(innermost) + " iterations at most, and cannot be made",
        "max_innermost_factor is 1 or more, or None for no limit");
  }
  return Ok{};
}

MultiLevelTiling::MultiLevelTiling(MultiLevelTilingOptions options) : PartOf(std::move(options)) {
  for (size_t i : indices_of(options_.structure)) {
    (options_.structure[i] == 'S' ? spatial_levels_ : reduction_levels_).push_back(i);
  }
}

Status MultiLevelTiling::initialize(const TuneContext& context) {
  pipeline_stages_.clear();
  if (copies_asynchronously(context.target)) pipeline_stages_ = {4, 5};
  auto threads = max_threads_per_block(context.target);
  max_threads_per_block_ = threads.value_or(-1);
  thread_warp_size_ = threads ? thread_warp_size(context.target).value_or(-1) : -1;
  return Ok{};
}

Result<bool> MultiLevelTiling::is_wanted(const Schedule& schedule, BlockRV block) const {
  TW_TRY(place, schedule.state().find(block));
  if (place.tree->realize_at(place.at) == nullptr) return false;
  if (options_.filter_fn) {
    TW_TRY(accepted, options_.filter_fn(schedule, block));
    if (accepted) return true;
  }
  return needs_multi_level_tiling(place);
}

Result<Schedules> MultiLevelTiling::tile(Schedule schedule, BlockRV block) const {
  TW_RETURN_IF_ERROR(schedule.apply(
      Annotate{.block_or_loop = block, .ann_key = "meta_schedule.tiling_structure", .ann_val = {options_.structure}}));
  TW_TRY(states, apply_steps({TilingState{std::move(schedule), block}}));
  Schedules result;
  for (TilingState& state : states) result.push_back(std::move(state.schedule));
  return result;
}

Result<Schedules> MultiLevelTiling::apply(Schedule schedule, BlockRV block) const {
  TW_TRY(wanted, is_wanted(schedule, block));
  if (!wanted) return Schedules{std::move(schedule)};
  return tile(std::move(schedule), block);
}

Result<TilingStates> MultiLevelTiling::step(TilingStates states, const StepFunction& function) {
  TilingStates result;
  for (TilingState& state : states) {
    TW_TRY(made, function(std::move(state)));
    std::ranges::move(made, std::back_inserter(result));
  }
  return result;
}

Result<TilingStates> MultiLevelTiling::apply_steps(TilingStates states) const {
  TW_TRY(tiled, step(std::move(states), [this](TilingState state) { return tile_loop_nest(std::move(state)); }));
  TW_TRY(written, step(std::move(tiled), [this](TilingState state) { return add_write_reuse(std::move(state)); }));
  TW_TRY(read, step(std::move(written), [this](TilingState state) { return add_read_reuse(std::move(state)); }));
  return step(std::move(read), [this](TilingState state) { return add_async_pipeline(std::move(state)); });
}

Result<MultiLevelTiling::SplitLoop> MultiLevelTiling::split_loop(Schedule& schedule, BlockRV, LoopRV loop,
                                                                 size_t n) const {
  TW_TRY(sampled, schedule.apply(SamplePerfectTile{.loop = loop,
                                                   .n = static_cast<int64_t>(n),
                                                   .max_innermost_factor = options_.max_innermost_factor.value_or(-1),
                                                   .decision = {}}));
  std::vector<Factor> factors = as_factors(sampled);
  TW_TRY(loops, schedule.apply(Split{.loop = loop, .factors = {factors}}));
  return SplitLoop{std::move(factors), std::move(loops)};
}

/// The loops around a block, each with its axis.
struct MultiLevelTiling::Nest {
  std::vector<LoopRV> loops;
  std::vector<IterType> types;
  std::vector<std::optional<int64_t>> extents;
  size_t num_spatial = 0;

  static Result<Nest> of(Schedule& schedule, BlockRV block) {
    Nest nest;
    TW_TRY(loops, schedule.apply(GetLoops{block}));
    nest.loops = std::move(loops);
    TW_TRY(place, schedule.state().find(block));
    for (const Ref<IterVar>& axis : place.block().iter_vars) nest.types.push_back(axis->iter_type);
    if (nest.types.size() != nest.loops.size()) {
      return refuse_nest(place);
    }
    for (int loop : place.tree->loops_above(place.at)) {
      nest.extents.push_back(const_int(place.tree->for_at(loop).extent));
    }
    nest.num_spatial = static_cast<size_t>(std::ranges::count(nest.types, IterType::kDataPar));
    return nest;
  }

  static Diagnostic refuse_nest(const Place& place) {
    Diagnostic error = schedule_error("multi_level_tiling/P1",
                                      "block '" + place.block().name_hint +
                                          "' has another number of axes than loops around it, so that they do not pair",
                                      "tile blocks whose axes are bound to one loop each");
    error.nodes.push_back(keep(place.node()));
    return error;
  }
};

Result<TilingStates> MultiLevelTiling::tile_loop_nest(TilingState state,
                                                      std::optional<size_t> num_inner_spatial) const {
  Schedule& schedule = state.schedule;
  TW_TRY(nest, Nest::of(schedule, state.block));
  size_t skip = num_inner_spatial ? nest.num_spatial - std::min(nest.num_spatial, *num_inner_spatial) : 0;
  std::optional<int64_t> spatial_product = 1;
  std::vector<LoopRV> skipped;
  state.tiles.assign(options_.structure.size(), {});
  state.tile_factors.assign(options_.structure.size(), {});
  for (size_t i : indices_of(nest.loops)) {
    bool is_spatial = nest.types[i] == IterType::kDataPar;
    if (!is_spatial && nest.types[i] != IterType::kCommReduce) continue;
    if (is_spatial) {
      spatial_product =
          spatial_product && nest.extents[i] ? std::optional(*spatial_product * *nest.extents[i]) : std::nullopt;
      if (skipped.size() < skip) {
        skipped.push_back(nest.loops[i]);
        continue;
      }
    }
    const std::vector<size_t>& levels = is_spatial ? spatial_levels_ : reduction_levels_;
    if (levels.size() == 1) {
      state.tiles[levels[0]].push_back(nest.loops[i]);
      continue;
    }
    TW_TRY(split, split_loop(schedule, state.block, nest.loops[i], levels.size()));
    for (size_t j : indices_of(levels)) {
      state.tiles[levels[j]].push_back(split.loops[j]);
      state.tile_factors[levels[j]].push_back(split.factors[j]);
    }
  }
  Reorder order;
  for (const auto& tile : state.tiles) {
    append_range(order.ordered_loops.items, tile);
  }
  TW_RETURN_IF_ERROR(schedule.apply(order));
  size_t num_binds = std::min(options_.tile_binds.size(), state.tiles.size());
  if (num_binds > 0) state.tiles[0].insert(state.tiles[0].begin(), skipped.begin(), skipped.end());
  for (size_t i = 0; i < num_binds; ++i) {
    TW_TRY(fused, schedule.apply(Fuse{.loops = {state.tiles[i]}}));
    TW_RETURN_IF_ERROR(schedule.apply(Bind{.loop = fused, .thread_axis = options_.tile_binds[i]}));
    state.tiles[i] = {fused};
  }
  if (thread_warp_size_ != -1) {
    int64_t low = spatial_product && *spatial_product > 2 * thread_warp_size_ ? thread_warp_size_ : 1;
    TW_RETURN_IF_ERROR(schedule.apply(Annotate{
        .block_or_loop = state.block, .ann_key = "meta_schedule.thread_extent_low_inclusive", .ann_val = {low}}));
    TW_RETURN_IF_ERROR(schedule.apply(Annotate{.block_or_loop = state.block,
                                               .ann_key = "meta_schedule.thread_extent_high_inclusive",
                                               .ann_val = {max_threads_per_block_}}));
  }
  return TilingStates{std::move(state)};
}

Result<TilingStates> MultiLevelTiling::add_write_reuse(TilingState state) const {
  using Requirement = ReuseType::Requirement;
  if (options_.reuse_write.requirement == Requirement::kNo) return TilingStates{std::move(state)};
  Requirement requirement = options_.reuse_write.requirement;
  std::vector<int64_t> levels = options_.reuse_write.levels;
  TW_TRY(place, state.schedule.state().find(state.block));
  if (auto asked = asked_levels(place.block())) {
    requirement = Requirement::kMust;
    levels = *asked;
    if (exceed(levels, options_.structure.size())) {
      return schedule_error("multi_level_tiling/P2",
                            "the annotation meta_schedule.write_cache_level of block '" + place.block().name_hint +
                                "' names a level that the tiles do not have",
                            "levels count from 1 to " + std::to_string(options_.structure.size()));
    }
  }
  TilingStates result;
  /// A state for each level, with the block that writes the result under the last loop there. Under reduction loops the
  /// result is not complete: such levels give none.
  auto at_each_level = [&](BlockRV copy) {
    for (int64_t level : levels) {
      TilingState other = state.fork();
      auto loop = last_loop(other, level);
      if (!loop) continue;
      if (other.schedule.apply(ReverseComputeAt{.block = copy, .loop = *loop, .preserve_unit_loops = true}).ok()) {
        result.push_back(std::move(other));
      }
    }
  };
  if (requirement == Requirement::kMay) {
    TW_TRY(consumers, state.schedule.apply(GetConsumers{state.block}));
    bool has_copy = false;
    if (consumers.size() == 1) {
      TW_TRY(consumer, state.schedule.state().find(consumers[0]));
      has_copy = is_write_cache(consumer.block());
    }
    if (has_copy) {
      at_each_level(consumers[0]);
      state.write_reuse[0] = consumers[0];
      result.push_back(std::move(state));
      return result;
    }
    result.push_back(state.fork());
  }
  TilingState without = state.fork();
  TW_TRY(copy, state.schedule.apply(CacheWrite{
                   .block = state.block, .storage_scope = options_.reuse_write.scope, .consumer_blocks = {}}));
  state.write_reuse[0] = copy;
  at_each_level(copy);
  if (result.empty()) result.push_back(std::move(without));
  return result;
}

Result<BlockRV> MultiLevelTiling::copy_read(Schedule& schedule, BlockRV block, size_t read, size_t rank,
                                            LoopRV loop) const {
  TW_TRY(copy, schedule.apply(CacheRead{.block = block,
                                        .read_buffer_index = static_cast<int64_t>(read),
                                        .storage_scope = options_.reuse_read.scope,
                                        .consumer_blocks = {{block}}}));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = copy, .loop = loop, .preserve_unit_loops = true}));
  TW_TRY(loops, schedule.apply(GetLoops{copy}));
  auto first = loops.end() - static_cast<std::ptrdiff_t>(std::min(rank, loops.size()));
  if (rank > 0) TW_RETURN_IF_ERROR(schedule.apply(Fuse{.loops = {{first, loops.end()}}}));
  TW_RETURN_IF_ERROR(annotate_cooperative_fetch(schedule, copy));
  return BlockRV(copy);
}

Result<TilingStates> MultiLevelTiling::add_read_reuse(TilingState state) const {
  if (options_.reuse_read.requirement == ReuseType::Requirement::kNo) return TilingStates{std::move(state)};
  TilingStates result;
  for (int64_t level : options_.reuse_read.levels) {
    TilingState other = state.fork();
    Schedule& schedule = other.schedule;
    auto loop = last_loop(other, level);
    TW_TRY(place, schedule.state().find(other.block));
    // ranks of buffers that are read; none for a buffer that the block writes
    std::vector<std::optional<size_t>> ranks;
    for (const Ref<BufferRegion>& read : place.block().reads) {
      bool is_written = read->buffer == place.block().writes[0]->buffer;
      ranks.push_back(is_written ? std::nullopt : std::optional(read->buffer->shape.size()));
    }
    for (size_t i : indices_of(ranks)) {
      if (!ranks[i] || !loop) continue;
      // An operand whose copy cannot be proved to be complete in time is read from its original location.
      Schedule trial = schedule;
      auto copy = copy_read(trial, other.block, i, *ranks[i], *loop);
      if (!copy.ok()) continue;
      schedule = std::move(trial);
      other.read_reuse[i] = *copy;
    }
    result.push_back(std::move(other));
  }
  return result;
}

Status MultiLevelTiling::annotate_cooperative_fetch(Schedule& schedule, BlockRV block) const {
  TW_TRY(place, schedule.state().find(block));
  DataType dtype = place.block().writes[0]->buffer->dtype;
  SampleCategorical sample;
  std::copy_if(options_.vector_load_lens.begin(), options_.vector_load_lens.end(),
               std::back_inserter(sample.candidates), [&](int64_t length) { return is_vector_length(dtype, length); });
  if (sample.candidates.empty()) return Ok{};
  sample.probs = equal_weights(sample.candidates.size());
  TW_TRY(length, schedule.apply(sample));
  TW_RETURN_IF_ERROR(schedule.apply(
      Annotate{.block_or_loop = block, .ann_key = "meta_schedule.cooperative_fetch", .ann_val = {length}}));
  return Ok{};
}

Result<TilingStates> MultiLevelTiling::add_async_pipeline(TilingState state) const {
  if (pipeline_stages_.empty() || reduction_levels_.empty()) return TilingStates{std::move(state)};
  const std::vector<LoopRV>& tile = state.tiles[reduction_levels_[0]];
  if (tile.empty()) return TilingStates{std::move(state)};
  TW_TRY(place, state.schedule.state().find(tile.back()));
  // Two copies and the computation, as the lists of stages below say.
  const SeqStmt* body = place.loop().body.as<SeqStmt>();
  bool is_known = body && body->seq.size() == 3 && all_of(body->seq, [](const Stmt& each) { return each.is<For>(); });
  if (!is_known) return TilingStates{std::move(state)};
  auto numbers = [](std::initializer_list<int64_t> items) {
    Value::List list;
    for (int64_t item : items) list.push_back({item});
    return Value{std::move(list)};
  };
  TilingStates result = {state};
  for (int64_t stages : pipeline_stages_) {
    TilingState other = state.fork();
    TW_TRY(loop, other.schedule.apply(Fuse{.loops = {other.tiles[reduction_levels_[0]]}}));
    std::pair<const char*, Value> words[] = {{"software_pipeline_stage", numbers({0, 0, stages - 2})},
                                             {"software_pipeline_order", numbers({0, 1, 2})},
                                             {"software_pipeline_async_stages", numbers({0})}};
    for (auto& [key, value] : words) {
      TW_RETURN_IF_ERROR(
          other.schedule.apply(Annotate{.block_or_loop = loop, .ann_key = key, .ann_val = std::move(value)}));
    }
    result.push_back(std::move(other));
  }
  return result;
}

}  // namespace tilewright::search
