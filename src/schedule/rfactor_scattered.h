#pragma once

#include "schedule/reduction_chain.h"

namespace tilewright::schedule {

/// Whether data select the elements to which the steps of the block add: Y[R[vp]] += A[vp].
bool is_scattered(const ReductionChain& chain);
/// Plans rfactor for such a block.
Result<Plan> factor_scattered(const ReductionChain& chain, int64_t factor_axis);

}  // namespace tilewright::schedule
