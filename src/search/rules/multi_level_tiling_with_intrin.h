// Tiles what a tensor intrinsic computes, and the loops around that like MultiLevelTiling.
//
// The loops that stand for the intrinsic become a block of their own, annotated "meta_schedule.auto_tensorize", which a
// postprocessor turns into the intrinsic. Blocks that do not fit stay as they are, and all do for a processor that does
// not have the instructions of the intrinsic.
#pragma once

#include "search/rules/multi_level_tiling.h"
#include "search/warnings.h"

namespace tilewright::search {

struct MultiLevelTilingWithIntrinOptions : MultiLevelTilingOptions {
  std::string intrin_name;
  using Members =
      Fields<&MultiLevelTilingWithIntrinOptions::intrin_name, &MultiLevelTilingWithIntrinOptions::structure,
             &MultiLevelTilingWithIntrinOptions::tile_binds, &MultiLevelTilingWithIntrinOptions::max_innermost_factor,
             &MultiLevelTilingWithIntrinOptions::vector_load_lens, &MultiLevelTilingWithIntrinOptions::reuse_read,
             &MultiLevelTilingWithIntrinOptions::reuse_write>;
  static constexpr size_t kRequired = 2;
};

class MultiLevelTilingWithIntrin final
    : public PartOf<MultiLevelTilingWithIntrin, MultiLevelTiling, MultiLevelTilingWithIntrinOptions> {
 public:
  using PartOf::PartOf;
  /// ArgumentError "multi_level_tiling/intrin" where no such intrinsic is registered.
  static Status check_intrin(const std::string& intrin_name);
  static Status check(const Options& options);

  Status initialize(const TuneContext& context) override;
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 protected:
  Result<TilingStates> apply_steps(TilingStates states) const override;

 private:
  bool is_missing_ = false;  ///< on the processor of the target
  Warnings warnings_;
};

}  // namespace tilewright::search
