// IR as bytes and back, derived from the field lists: what processes of one build of Tilewright tell one another. Read
// and written in a tenth of the time that JSON takes; nothing is kept in this form.
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
