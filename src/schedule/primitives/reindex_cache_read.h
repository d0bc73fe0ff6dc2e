#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReindexCacheRead {
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  std::string storage_scope;
  IndexFunction index_map;
  using Members = Fields<&ReindexCacheRead::block, &ReindexCacheRead::read_buffer_index,
                         &ReindexCacheRead::storage_scope, &ReindexCacheRead::index_map>;
  using Returns = BlockRV;
  static constexpr std::string_view kAmongInputs = "index_map";
  static constexpr std::string_view kDoc =
      R"(Copy what a block reads of a buffer into a new one, with indices of your choice.

The copy has the loops and axes of the block, those that its indices speak of.

Args:
    block: a block that reads one element of the buffer in each instance.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...
    index_map: from the block's axes to the indices of the new buffer, as in lambda i, j: (j, i // 2, i % 2). It speaks
        of the same axes as the old indices, and different values of them have different images.

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
