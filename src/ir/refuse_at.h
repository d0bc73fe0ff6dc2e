// Refusals of a part of the user's program.
#pragma once

#include <string>

#include "ir/node.h"
#include "support/diagnostic.h"

namespace tilewright {

/// A refusal that underlines `node` in the user's program; nothing where `node` is not defined.
Diagnostic refuse_at(const NodeRef& node, std::string code, std::string message, std::string hint = {});

}  // namespace tilewright
