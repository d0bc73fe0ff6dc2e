// A scheduled program as far as lowering has to go until buffers have their final places and sizes.
#pragma once

#include <vector>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::search {

/// Returns the functions with blocks without axes, and each buffer allocated where it is needed, as large as the
/// accessed region.
Result<std::vector<Ref<PrimFunc>>> compacted_functions(const Ref<Module>& module);

/// Returns the size in bytes of a buffer of constant shape; nothing for others, or if it does not fit 64 bits.
std::optional<int64_t> bytes_of(const Buffer& buffer);

}  // namespace tilewright::search
