// Sums of products of bytes for which the target has dot-product instructions.
#pragma once

#include "ir/build.h"
#include "target/target.h"

namespace tilewright::lower {

/// Returns how many products a dot-product instruction of the target adds to one accumulator, if the operand is a
/// product of bytes and the target has such an instruction; else 1.
int64_t group_of(const Expr& operand, const Target& target);

}  // namespace tilewright::lower
