// Index maps and expressions as TVM v0.20 writes them in its records:
//
//   {"root": 1, "nodes": [{"type_key": ""},
//                         {"type_key": "tir.IndexMap", "attrs": {"initial_indices": "2", "final_indices": "4", ...}},
//                         {"type_key": "Array", "data": [3]}, {"type_key": "tir.Var", "attrs": {...}}, ...], ...}
//
// Attributes are texts; that of a node is its number, 0 for none. A node comes before those that it holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"
#include "support/result.h"

namespace tilewright {

/// ScriptError "json/content" or "json/syntax" for anything else, and for nodes of other kinds.
Result<NodeRef> from_object_graph(std::string_view text);
/// Nothing for what holds nodes of other kinds: calls, loads, vectors.
std::optional<std::string> to_object_graph(const NodeRef& node);

}  // namespace tilewright
