// Tiles what a tensor intrinsic computes, and the loops around that like MultiLevelTiling.
//
// The loops that stand for the intrinsic become a block of their own, annotated "meta_schedule.auto_tensorize", which a
// postprocessor turns into the intrinsic. Blocks that do not fit stay as they are, and all do for a processor that does
// not have the instructions of the intrinsic.
#pragma once

#include "search/rules/multi_level_tiling.h"
#include "search/warnings.h"

namespace tilewright::search {

class MultiLevelTilingWithIntrin final : public MultiLevelTiling {
 public:
  /// ArgumentError "multi_level_tiling/intrin" where no such intrinsic is registered.
  static Status check_intrin(const std::string& intrin_name);
  MultiLevelTilingWithIntrin(std::string intrin_name, MultiLevelTilingOptions options)
      : MultiLevelTiling(std::move(options)), intrin_name_(std::move(intrin_name)) {}

  Status initialize(const TuneContext& context) override;
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "MultiLevelTilingWithIntrin"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<MultiLevelTilingWithIntrin>(*this); }

 protected:
  Result<TilingStates> apply_steps(TilingStates states) const override;

 private:
  std::string intrin_name_;
  bool is_missing_ = false;  ///< on the processor of the target
  Warnings warnings_;
};

}  // namespace tilewright::search
