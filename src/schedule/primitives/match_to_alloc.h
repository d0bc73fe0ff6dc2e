#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct MatchToAlloc {
  BlockRV block;
  BufferIndex buffer_index = int64_t{0};
  using Members = Fields<&MatchToAlloc::block, &MatchToAlloc::buffer_index>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Replace an intermediate parameter by an allocated buffer.

The block, and all that read from it, use a new buffer BUFFER_tmp, which the function allocates. The parameter remains, but
callers find in it what they have put there. So intermediate results can live in other memories (``set_scope``), and move to
where they are used. ``verify()`` does not compare that parameter.

SparseTIR's implementation (arXiv 2207.04606).

Args:
    block: a block that writes the buffer, all of whose elements are written before they are read.
    buffer_index: which of its writes: a position, or the buffer's name.)";
};

}  // namespace tilewright::schedule
