// Tiles like MultiLevelTiling, with whole vector registers of the output as the innermost tile.
#pragma once

#include "search/rules/multi_level_tiling.h"

namespace tilewright::search {

class MultiLevelTilingWideVector final : public MultiLevelTiling {
 public:
  MultiLevelTilingWideVector(MultiLevelTilingOptions options, int64_t vector_length_in_bits)
      : MultiLevelTiling(std::move(options)), vector_length_in_bits_(vector_length_in_bits) {}

  std::string name() const override { return "MultiLevelTilingWideVector"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<MultiLevelTilingWideVector>(*this); }

 protected:
  Result<SplitLoop> split_loop(schedule::Schedule& schedule, schedule::BlockRV block, schedule::LoopRV loop,
                               size_t n) const override;

 private:
  int64_t vector_length_in_bits_;
};

}  // namespace tilewright::search
