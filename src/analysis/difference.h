// How far two integer expressions are apart, where that does not depend on anything.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace tilewright::analysis {

/// a - b, if it is a constant. Sums of the same terms in another order are recognized.
std::optional<int64_t> constant_difference(const Expr& a, const Expr& b);

}  // namespace tilewright::analysis
