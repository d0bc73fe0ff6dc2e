// Tiles what the tensor cores of a GPU compute: products of matrix fragments that a warp holds in registers.
//
// The block's axes are fused to the axes m, n and k of a matrix product, and its buffers get that layout: reindex()
// copies them, and the copies are later inlined into the copies to shared memory. The tiles bound to threadIdx.y belong
// to one warp each. The result is packed by warps and fragments. Loads and stores of fragments, and the product, become
// blocks annotated "meta_schedule.auto_tensorize".
//
// Fragments are of two kinds. A wmma fragment is opaque: it is stored to shared memory, and copied from there to the
// result. An m16n8k8 fragment is a set of registers that instructions name by number: a warp's tile consists of whole
// ldmatrix loads (sample_partitioned_tile), and read_at and write_at copy regions in and out, in the layout of shared
// memory that the annotation "permuted_layout" selects.
#pragma once

#include "search/rules/multi_level_tiling.h"

namespace tilewright::search {

/// Names of tensor intrinsics that work together.
struct TensorCoreIntrins {
  std::string init, load_a, load_b, compute, store;
  using Members = Fields<&TensorCoreIntrins::init, &TensorCoreIntrins::load_a, &TensorCoreIntrins::load_b,
                         &TensorCoreIntrins::compute, &TensorCoreIntrins::store>;
};

struct MultiLevelTilingTensorCoreOptions : MultiLevelTilingOptions {
  std::vector<TensorCoreIntrins> intrin_groups;
  bool use_software_pipeline = false;
  using Members =
      Fields<&MultiLevelTilingTensorCoreOptions::intrin_groups, &MultiLevelTilingTensorCoreOptions::structure,
             &MultiLevelTilingTensorCoreOptions::tile_binds, &MultiLevelTilingTensorCoreOptions::max_innermost_factor,
             &MultiLevelTilingTensorCoreOptions::vector_load_lens, &MultiLevelTilingTensorCoreOptions::reuse_read,
             &MultiLevelTilingTensorCoreOptions::reuse_write,
             &MultiLevelTilingTensorCoreOptions::use_software_pipeline>;
  static constexpr size_t kRequired = 2;
};

class MultiLevelTilingTensorCore final
    : public PartOf<MultiLevelTilingTensorCore, MultiLevelTiling, MultiLevelTilingTensorCoreOptions> {
 public:
  using PartOf::PartOf;
  /// ArgumentError "multi_level_tiling/intrin" where an intrinsic is not registered, "multi_level_tiling/tensor-core"
  /// for tiles without a warp, or results of wmma that are not copied through shared memory.
  static Status check(const Options& options);

  /// Returns a schedule for each group of intrinsics that matches, or the unchanged schedule if none does.
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 private:
  struct Product;

  Result<TilingStates> apply_group(Schedule schedule, BlockRV block, const TensorCoreIntrins& group) const;
  Result<SplitLoop> split_loop(Schedule& schedule, BlockRV block, LoopRV loop, size_t n) const override;
  size_t warp_level() const;
  // Each step modifies `state`; false: the state does not match.
  Result<bool> pack_result(TilingState& state, const Product& product) const;
  Result<bool> store_fragments(TilingState& state, const Product& product) const;
  Result<bool> store_registers(TilingState& state, const Product& product) const;
  static Status write_result(Schedule& schedule, BlockRV copy, const Product& product);
  Result<TilingStates> copy_operands(TilingState state) const;
  Result<bool> load_fragments(TilingState& state, const Product& product) const;
  Result<bool> has_steps(TilingState& state) const;
  using Annotated = std::vector<std::pair<const char*, schedule::Value>>;
  Status annotate_pipeline(TilingState& state, const Annotated& copies, const Annotated& outer) const;
  Status add_software_pipeline(TilingState& state) const;
  Status add_copying_pipeline(TilingState& state) const;
};

}  // namespace tilewright::search
