#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReIndex {
  BlockRV block;
  TouchedBuffer buffer;
  using Members = Fields<&ReIndex::block, &ReIndex::buffer>;
  using Returns = BlockRV;
  static constexpr std::string_view kDoc =
      R"(Let a block touch a copy of a buffer that has the block's own axes as indices.

A[vj, vi] becomes A_reindex[vi, vj]. What the block reads is copied before the loops around it, and what
it writes after them.

Args:
    block: a block without blocks inside that touches one element of the buffer in each instance.
    buffer: ("read", position), ("write", position), the buffer's name, or the buffer.

Returns:
    The copying block, named after the buffer that it writes: BUFFER_reindex.)";
};

}  // namespace tilewright::schedule
