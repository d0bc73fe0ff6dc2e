// Tiles like MultiLevelTiling, with whole vector registers of the output as the innermost tile.
#pragma once

#include "search/rules/multi_level_tiling.h"

namespace tilewright::search {

struct MultiLevelTilingWideVectorOptions : MultiLevelTilingOptions {
  int64_t vector_length_in_bits = 0;
  using Members =
      Fields<&MultiLevelTilingWideVectorOptions::structure, &MultiLevelTilingWideVectorOptions::vector_length_in_bits,
             &MultiLevelTilingWideVectorOptions::max_innermost_factor, &MultiLevelTilingWideVectorOptions::reuse_read,
             &MultiLevelTilingWideVectorOptions::reuse_write>;
  static constexpr size_t kRequired = 2;
};

class MultiLevelTilingWideVector final
    : public PartOf<MultiLevelTilingWideVector, MultiLevelTiling, MultiLevelTilingWideVectorOptions> {
 public:
  using PartOf::PartOf;

 protected:
  Result<SplitLoop> split_loop(Schedule& schedule, BlockRV block, LoopRV loop, size_t n) const override;
};

}  // namespace tilewright::search
