// Sums of products of bytes for which the target has dot-product instructions.
#pragma once

#include "ir/build.h"
#include "target/target.h"

namespace tilewright::lower {

/// Products that one sum takes at a time where the operand of a sum is a product of bytes, and the target has an
/// instruction for that; else 1.
int64_t group_of(const Expr& operand, const Target& target);

}  // namespace tilewright::lower
