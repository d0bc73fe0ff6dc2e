// Finds the buffer that a primitive's argument selects, and replaces a buffer in the program. Shared by primitives that
// change buffers.
#pragma once

#include "ir/traverse.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Returns the buffer that `selector` selects, and replaces the selector by ("read" or "write", position). A name or a
/// buffer is searched among the writes first. Refuses with `code` if the block accesses no such buffer.
Result<Ref<Buffer>> touched_buffer(TouchedBuffer& selector, const Place& block, const std::string& code);

/// Whether something other than an atomic operation takes the address of an element of the buffer, through which it may
/// access other elements.
bool takes_address(const NodeRef& node, const Ref<Buffer>& buffer);

/// Whether the buffer is a parameter of the function.
bool is_parameter(const State& state, uint32_t func, const Ref<Buffer>& buffer);

/// Returns the function with the new body. A parameter is also replaced in the signature.
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
