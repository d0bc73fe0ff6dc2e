// Which inputs a call may give as the memory of the output, too: each element is read before it is written, and only to
// compute that very element.
#pragma once

#include <unordered_set>

#include "ir/stmt.h"

namespace tilewright::codegen {

/// Data pointers of the parameters that may be one tensor in a call: the only one that the function writes, and inputs
/// of its type and shape. Empty where nothing of the kind is proved.
std::unordered_set<NodeRef> parameters_in_place(const Ref<PrimFunc>& func);

/// Whether the buffers have one type and one shape, without strides.
bool has_layout_of(const Buffer& a, const Buffer& b);

}  // namespace tilewright::codegen
