// IR as JSON text and back, derived from the field lists.
//
//   {"tilewright": 2, "root": 7, "nodes": [{"class": "Var", "name_hint": "i", ...}, ...]}
//
// Nodes refer to earlier nodes by index, so shared variables stay shared and no depth is too deep. The
// kind is under "class", which no field can be called.
#pragma once

#include <string>
#include <string_view>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright {

std::string to_json(const NodeRef& root);
/// Also what TVM writes of index maps and expressions (ir/object_graph.h). ScriptError "json/..." for anything else.
Result<NodeRef> from_json(std::string_view text);

/// Base64 of RFC 4648.
std::string encode_base64(std::string_view bytes);
Result<std::string> decode_base64(std::string_view text);

}  // namespace tilewright
