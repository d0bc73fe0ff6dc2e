// Tiles what the tensor cores of a GPU compute: products of matrix fragments that a warp holds in registers.
//
// The block's axes are joined to those of a product, in buffers with that layout (copies by reindex, which go into the
// copies to shared memory later). Of its tiles, what threadIdx.y runs over is a warp's part; the result is packed by
// warps and fragments. Loads and stores of fragments, and the product, become blocks annotated
// "meta_schedule.auto_tensorize".
#pragma once

#include "search/rules/multi_level_tiling.h"

namespace tilewright::search {

/// Names of tensor intrinsics that work together.
struct TensorCoreIntrins {
  std::string init, load_a, load_b, compute, store;
};

class MultiLevelTilingTensorCore final : public MultiLevelTiling {
 public:
  /// ArgumentError "multi_level_tiling/intrin" where an intrinsic is not registered, "multi_level_tiling/tensor-core"
  /// for tiles without a warp, or results that are not copied through shared memory.
  static Status check(const std::vector<TensorCoreIntrins>& groups, const MultiLevelTilingOptions& options);
  MultiLevelTilingTensorCore(std::vector<TensorCoreIntrins> groups, MultiLevelTilingOptions options,
                             bool use_software_pipeline)
      : MultiLevelTiling(std::move(options)), groups_(std::move(groups)), pipelines_(use_software_pipeline) {}

  /// A schedule for each group that fits; the schedule as it is where none does.
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "MultiLevelTilingTensorCore"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<MultiLevelTilingTensorCore>(*this); }

 private:
  struct Product;

  Result<TilingStates> apply_group(schedule::Schedule schedule, schedule::BlockRV block,
                                   const TensorCoreIntrins& group) const;
  // Steps: false where the state does not fit.
  Result<bool> pack_result(TilingState& state, const Product& product) const;
  Result<bool> store_fragments(TilingState& state, const Product& product) const;
  Result<bool> load_fragments(TilingState& state, const Product& product) const;
  Status add_software_pipeline(TilingState& state) const;

  std::vector<TensorCoreIntrins> groups_;
  bool pipelines_;
};

}  // namespace tilewright::search
