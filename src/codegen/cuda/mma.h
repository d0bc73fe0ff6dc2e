// Products and loads of tiles in registers as functions of inline PTX (ir/warp_steps.h).
#pragma once

#include <string>
#include <utility>

#include "ir/warp_steps.h"

namespace tilewright::codegen {

/// Name and text of the function (sums, a, b) of a product, or (registers, row) of a load; empty if there is no such
/// instruction.
std::pair<std::string, std::string> mma_function(const Expr& step);

}  // namespace tilewright::codegen
