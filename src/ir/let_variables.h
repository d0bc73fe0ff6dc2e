// Variables that lets define.
#pragma once

#include <unordered_set>

#include "ir/node.h"

namespace tilewright {

/// Returns the variables that the lets in a node define (LetStmt and Let). Their values may differ between iterations
/// of a loop around the node, and between threads.
std::unordered_set<NodeRef> let_variables(const NodeRef& root);

}  // namespace tilewright
