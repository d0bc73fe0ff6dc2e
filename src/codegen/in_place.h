// Which inputs a call may give as the memory of the output, too: each element is read before it is written, and only to
// compute that very element.
#pragma once

#include <set>
#include <string>
#include <unordered_set>

#include "ir/stmt.h"

namespace tilewright::codegen {

/// Data pointers of the parameters that may be one tensor in a call: the only one that the function writes, and inputs
/// of its type and shape. Empty where nothing of the kind is proved.
std::unordered_set<NodeRef> parameters_in_place(const Ref<PrimFunc>& func);
/// The parameters of a lowered function that may launch kernels of the module.
std::unordered_set<NodeRef> parameters_in_place(const Ref<PrimFunc>& func, const Ref<Module>& module);

/// The kernel that the call launches; null if it launches none.
const PrimFunc* launched_kernel(const Call& call, const Ref<Module>& module);
/// Names of the kernels that functions launch on parameters that may be one tensor.
std::set<std::string> kernels_in_place(const Ref<Module>& lowered);

/// Whether the buffers have one type and one shape, without strides.
bool has_layout_of(const Buffer& a, const Buffer& b);

}  // namespace tilewright::codegen
