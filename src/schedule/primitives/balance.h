#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Balance {
  LoopRV loop;
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  using Members = Fields<&Balance::loop, &Balance::block, &Balance::read_buffer_index>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Divide a parallel loop into chunks of equal work.

A buffer of offsets states the work, as the row pointers of a matrix in CSR do: iteration i has one element more than
offsets[i + 1] - offsets[i]. Each iteration still runs exactly once, whatever the buffer holds.

Args:
    loop: a parallel loop from 0, with one iteration less than there are offsets.
    block: a block below the loop that reads the offsets.
    read_buffer_index: which of its reads: a position, or the buffer's name.)";
};

}  // namespace tilewright::schedule
