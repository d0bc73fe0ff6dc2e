// Errors that refer to a part of the user's program.
#pragma once

#include <string>

#include "ir/node.h"
#include "support/diagnostic.h"

namespace tilewright {

/// Returns an error that underlines `node` in the user's program. A null `node` underlines nothing.
Diagnostic refuse_at(const NodeRef& node, std::string code, std::string message, std::string hint = {});

}  // namespace tilewright
