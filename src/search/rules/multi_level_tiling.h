// Tiles the loops around a reduction that reads elements again, level by level, with copies of its buffers between.
//
//   structure "SSRSRS", of C[i, j] += A[i, k] * B[k, j]:
//   i_0 j_0   i_1 j_1   k_0   i_2 j_2   k_1   i_3 j_3        sizes are sampled
//
// Where rules leave a choice that sampling cannot express, such as the level of a copy, there is one schedule for each.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "search/rules/reuse_type.h"
#include "search/rules/schedule_rule.h"

namespace tilewright::search {

/// A schedule between the steps of tiling.
struct TilingState {
  Schedule schedule;
  BlockRV block;
  std::vector<std::vector<LoopRV>> tiles{};                   ///< by level
  std::vector<std::vector<schedule::Factor>> tile_factors{};  ///< by level, of the loops that were split
  std::map<size_t, BlockRV> read_reuse{}, write_reuse{};      ///< copies, by position of the read or write

  TilingState fork() {
    TilingState copy = *this;
    copy.schedule = schedule.fork();
    return copy;
  }
};
using TilingStates = std::vector<TilingState>;

struct MultiLevelTilingOptions {
  using Filter = std::function<Result<bool>(const Schedule&, BlockRV)>;

  std::string structure;                          ///< "SSRSRS": levels of spatial and of reduction loops
  std::vector<std::string> tile_binds{};          ///< thread axes of the first levels, whose loops are fused
  std::optional<int64_t> max_innermost_factor{};  ///< -1: no limit, too
  std::vector<int64_t> vector_load_lens{};
  ReuseType reuse_read{}, reuse_write{};
  Filter filter_fn{};  ///< blocks that are tiled although it may not pay; none: only those where it does
  using Members = Fields<&MultiLevelTilingOptions::structure, &MultiLevelTilingOptions::tile_binds,
                         &MultiLevelTilingOptions::max_innermost_factor, &MultiLevelTilingOptions::vector_load_lens,
                         &MultiLevelTilingOptions::reuse_read, &MultiLevelTilingOptions::reuse_write,
                         &MultiLevelTilingOptions::filter_fn>;
  static constexpr size_t kRequired = 1;
};

class MultiLevelTiling : public PartOf<MultiLevelTiling, ScheduleRule, MultiLevelTilingOptions> {
 public:
  /// ArgumentError "multi_level_tiling/structure" for a structure of anything but S and R, or without both,
  /// "multi_level_tiling/levels" for levels that it does not have, "multi_level_tiling/read-reuse" for "may" there,
  /// "multi_level_tiling/tile-binds" for what is no thread axis, "multi_level_tiling/innermost" for tiles of nothing.
  static Status check(const MultiLevelTilingOptions& options);
  explicit MultiLevelTiling(MultiLevelTilingOptions options);

  Status initialize(const TuneContext& context) override;
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 protected:
  struct SplitLoop {
    std::vector<schedule::Factor> factors;
    std::vector<LoopRV> loops;
  };

  /// The steps, in order; each state becomes one or several.
  virtual Result<TilingStates> apply_steps(TilingStates states) const;
  /// Makes n loops of one around the block.
  virtual Result<SplitLoop> split_loop(Schedule& schedule, BlockRV block, LoopRV loop, size_t n) const;

  using StepFunction = std::function<Result<TilingStates>(TilingState)>;
  static Result<TilingStates> step(TilingStates states, const StepFunction& function);

  /// With `num_inner_spatial`, tiles only this many of the spatial loops, the last ones; the outer ones go to the first
  /// level whole.
  Result<TilingStates> tile_loop_nest(TilingState state, std::optional<size_t> num_inner_spatial = {}) const;
  Result<TilingStates> add_write_reuse(TilingState state) const;
  Result<TilingStates> add_read_reuse(TilingState state) const;
  Result<TilingStates> add_async_pipeline(TilingState state) const;
  /// A copy of one of the buffers that the block reads, made under the loop by one loop of its own.
  Result<BlockRV> copy_read(Schedule& schedule, BlockRV block, size_t read, size_t rank, LoopRV loop) const;
  /// Samples how many elements a thread copies at a time, for a block whose loops are fused.
  Status annotate_cooperative_fetch(Schedule& schedule, BlockRV block) const;
  /// The schedules of the states; annotates the block first.
  Result<Schedules> tile(Schedule schedule, BlockRV block) const;
  Result<bool> is_wanted(const Schedule& schedule, BlockRV block) const;

  std::vector<size_t> spatial_levels_, reduction_levels_;

 private:
  struct Nest;

  int64_t max_threads_per_block_ = -1, thread_warp_size_ = -1;
  std::vector<int64_t> pipeline_stages_;  ///< stages that the target has instructions for
};

}  // namespace tilewright::search
