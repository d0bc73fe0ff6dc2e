#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct PrefetchAt {
  LoopRV loop;
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  int64_t distance = 1;
  using Members = Fields<&PrefetchAt::loop, &PrefetchAt::block, &PrefetchAt::read_buffer_index, &PrefetchAt::distance>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr std::string_view kDoc =
      R"(Ask for what later iterations of a loop will read, so that it is in the cache by then.

Each iteration begins with a request for the region that the block reads `distance` iterations later. It changes nothing
that is computed; for each cache line of the region there is one instruction.

Args:
    loop: a loop around the block.
    block: a block that reads the buffer.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    distance: how many iterations ahead, at least 1.

Returns:
    The block that asks, BUFFER_prefetch.)";
};

}  // namespace tilewright::schedule
