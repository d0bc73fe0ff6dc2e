#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct CacheRead {
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  std::string storage_scope;
  OmitEmpty<BlockRV> consumer_blocks;
  using Members =
      Fields<&CacheRead::block, &CacheRead::read_buffer_index, &CacheRead::storage_scope, &CacheRead::consumer_blocks>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Copy a buffer into a new one, and redirect its readers to the copy.

The copy is a block of its own, before the first of the readers or at the top of the scope; compute_at moves it.

Args:
    block: a block that reads the buffer.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    storage_scope: where the copy lives: "global", "local" (registers on a CPU), "shared", ...
    consumer_blocks: the readers to redirect; by default all that read the same values as the block.

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
