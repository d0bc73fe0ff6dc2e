// Number of versions of a buffer that a software pipeline keeps.
#pragma once

#include <cstdint>

#include "ir/stmt.h"

namespace tilewright::search {

/// Returns how many versions of the buffer, which is allocated inside of the loop, are in use at once if the
/// annotations of the loop ask for a pipeline that passes values through the buffer; else 1.
int64_t pipeline_versions(const For& loop, const Ref<Buffer>& buffer);

}  // namespace tilewright::search
