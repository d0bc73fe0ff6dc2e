#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct PrefetchIndirect {
  LoopRV loop;
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  int64_t distance = 8;
  int64_t min_bytes = 0;
  using Members = Fields<&PrefetchIndirect::loop, &PrefetchIndirect::block, &PrefetchIndirect::read_buffer_index,
                         &PrefetchIndirect::distance, &PrefetchIndirect::min_bytes>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr std::string_view kDoc = R"(Prefetch what a buffer of indices selects, beyond the end of the loop.

The loop moves through a buffer of indices, as the nonzeros of a row in CSR through the column indices. Each iteration
begins with a request for the region that the index `distance` positions later selects. That position may belong to a
later run of the loop, such as the next row: only the end of the buffer of indices ends the requests.

Args:
    loop: a loop around the block.
    block: a block that reads the buffer.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    distance: how many positions ahead, at least 1.
    min_bytes: ask only if the buffer has at least so many bytes, which its sizes say when the program runs. What is in
        a cache near the core is there sooner than a request for it ends.

Returns:
    The block that asks, BUFFER_prefetch.)";
};

}  // namespace tilewright::schedule
