#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct CacheInplace {
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  std::string storage_scope;
  using Members = Fields<&CacheInplace::block, &CacheInplace::read_buffer_index, &CacheInplace::storage_scope>;
  using Returns = std::vector<BlockRV>;
  static constexpr std::string_view kDoc = R"(Make a block update a copy of a buffer.

What the block reads is copied right before it, and what it writes right after it.

Args:
    block: a block that reads and writes the buffer.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    storage_scope: where the copy lives: "global", "local" (registers on a CPU), "shared", ...

Returns:
    The block that copies in and the one that copies back, both named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
