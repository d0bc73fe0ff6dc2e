#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct CacheWrite {
  BlockRV block;
  BufferIndex write_buffer_index = int64_t{0};
  std::string storage_scope;
  OmitEmpty<BlockRV> consumer_blocks;
  using Members = Fields<&CacheWrite::block, &CacheWrite::write_buffer_index, &CacheWrite::storage_scope,
                         &CacheWrite::consumer_blocks>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Make a block write a new buffer, and copy it back to the old one.

The copy is a block of its own; reverse_compute_at moves it.

Args:
    block: the only block that writes the buffer.
    write_buffer_index: which of its writes: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...
    consumer_blocks: the readers that shall read the new buffer; none by default.

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
