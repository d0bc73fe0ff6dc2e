// Follows a path such as ".body.seq[1].extent" through a program.
#pragma once

#include <string_view>
#include <vector>

#include "ir/fields.h"

namespace tilewright::script {

/// Returns the nodes along the path, from the root to the last one that exists. A field that holds no node ends the
/// path.
std::vector<const NodeBase*> nodes_along(const NodeRef& root, std::string_view path);

}  // namespace tilewright::script
