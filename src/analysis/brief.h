// Prints expressions and regions for error messages. script/ prints programs.
#pragma once

#include <string>

#include "arith/int_set.h"

namespace tilewright::analysis {

/// "n", "i * 4 + 3"; parts that nest too deep become "...".
[[gnu::cold]] std::string brief(const Expr& e);
/// "A[i, 0:n]"
[[gnu::cold]] std::string brief(const Ref<BufferRegion>& region);
[[gnu::cold]] std::string brief(const Ref<Buffer>& buffer, const arith::Box& box);

}  // namespace tilewright::analysis
