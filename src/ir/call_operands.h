// Checks the operands of calls against the table of intrinsics.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace tilewright {

/// Returns a message if a call of an intrinsic has the wrong number of operands, or operands of wrong types. Returns
/// nothing for valid calls, and for calls of functions that are not in the table.
std::optional<std::string> wrong_operands(const Call& call);

}  // namespace tilewright
