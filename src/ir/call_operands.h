// What the table of intrinsics asks of the operands of a call.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace tilewright {

/// Why the call of an intrinsic means nothing: the number of its operands, or their types. Nothing for other calls.
std::optional<std::string> wrong_operands(const Call& call);

}  // namespace tilewright
