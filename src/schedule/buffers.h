// Shared by primitives about buffers: finding the buffer that is meant, and replacing it in the program.
#pragma once

#include "ir/traverse.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// The buffer that is meant, looked for among the writes first where a name or a buffer says it; `chosen` becomes
/// ("read" or "write", position). CODE when the block touches none such.
Result<Ref<Buffer>> touched_buffer(TouchedBuffer& chosen, const Place& block, const std::string& code);

/// Whether something takes the address of an element of the buffer, from where it may reach others: anything but an
/// atomic operation, which updates the element.
bool takes_address(const NodeRef& node, const Ref<Buffer>& buffer);

/// Whether the buffer is a parameter of the function.
bool is_parameter(const State& state, uint32_t func, const Ref<Buffer>& buffer);

/// The function with the new body; a parameter is replaced in its signature too.
Plan with_buffer(const State& state, uint32_t func, const Ref<Buffer>& before, const Ref<Buffer>& after,
                 Ref<Block> root);

/// Callback of rewrite(): turns a load or a store of `before` into one of `after`, at the indices `moved(indices)`.
template <class Access, class Moved>
Ref<Access> moved_access(const Ref<Access>& old, Rewriter& walk, const Ref<Buffer>& before, const Ref<Buffer>& after,
                         Moved&& moved) {
  Ref<Access> inner = walk.descend(old);
  if (inner->buffer != before) return inner;
  Access access = *inner;
  access.buffer = after;
  access.indices = moved(std::move(access.indices));
  return make(std::move(access), old.span());
}

}  // namespace tilewright::schedule
