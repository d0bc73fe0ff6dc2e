// What primitives about buffers have in common: which one is meant, and giving the program another one in its place.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// The buffer that is meant, looked for among the writes first where a name or a buffer says it; `chosen` becomes
/// ("read" or "write", position). CODE when the block touches none such.
Result<Ref<Buffer>> touched_buffer(TouchedBuffer& chosen, const Place& block, const std::string& code);

/// Whether it is a parameter of the function.
bool is_parameter(const State& state, uint32_t func, const Ref<Buffer>& buffer);

/// The function with the new body; a parameter is replaced in its signature too.
Plan with_buffer(const State& state, uint32_t func, const Ref<Buffer>& before, const Ref<Buffer>& after,
                 Ref<Block> root);

}  // namespace tilewright::schedule
