// Limits of GPU targets on thread blocks. A size of 0 is no limit.
#pragma once

#include <optional>

#include "target/target.h"

namespace tilewright::search {

inline std::optional<int64_t> max_threads_per_block(const std::optional<Target>& target) {
  if (!target || !target->is_in(TargetSet::kGpu) || target->max_threads_per_block == 0) return std::nullopt;
  return target->max_threads_per_block;
}

inline std::optional<int64_t> thread_warp_size(const std::optional<Target>& target) {
  return target && target->is_in(TargetSet::kGpu) ? std::optional<int64_t>(target->thread_warp_size) : std::nullopt;
}

}  // namespace tilewright::search
