// Index maps and expressions as TVM v0.20 writes them in its records:
//
//   {"root": 1, "nodes": [{"type_key": ""},
//                         {"type_key": "tir.IndexMap", "attrs": {"initial_indices": "2", "final_indices": "4", ...}},
//                         {"type_key": "Array", "data": [3]}, {"type_key": "tir.Var", "attrs": {...}}, ...], ...}
//
// Attribute values are strings. A reference is an index into `nodes`; "0" is null. A node precedes its children.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"
#include "support/result.h"

namespace tilewright {

/// Reads an index map or an expression. Errors: "json/syntax" for invalid JSON and missing fields, "json/content" for
/// node types that index maps do not use, and the errors of make().
Result<NodeRef> from_object_graph(std::string_view text);
/// Returns nothing if the expression contains a call, a load or a vector.
std::optional<std::string> to_object_graph(const NodeRef& node);

}  // namespace tilewright
