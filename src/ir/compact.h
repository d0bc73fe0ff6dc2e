// IR as bytes and back, derived from the field lists: the format in which processes of one build exchange programs. It
// takes a tenth of the time of JSON, and is never stored.
#pragma once

#include <string>
#include <string_view>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright {

std::string to_compact(const NodeRef& root);
bool is_compact(std::string_view bytes);
/// InternalError "ir/compact" for anything that to_compact would not have written.
Result<NodeRef> from_compact(std::string_view bytes);

}  // namespace tilewright
