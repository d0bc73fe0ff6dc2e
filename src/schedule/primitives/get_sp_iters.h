#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetSpIters {
  BlockRV iteration;
  using Members = Fields<&GetSpIters::iteration>;
  using Returns = std::vector<LoopRV>;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Return the variables of an iteration over sparse axes.

Args:
    iteration: what get_sparse_iteration gives, or the iteration's name.

Returns:
    A handle for each axis, in their order, for sparse_reorder and sparse_fuse. They end with lower_sparse_iter.)";
};

}  // namespace tilewright::schedule
