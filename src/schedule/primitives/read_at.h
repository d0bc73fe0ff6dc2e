#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReadAt {
  LoopRV loop;
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  std::string storage_scope;
  using Members = Fields<&ReadAt::loop, &ReadAt::block, &ReadAt::read_buffer_index, &ReadAt::storage_scope>;
  using Returns = BlockRV;
  static constexpr std::string_view kDoc =
      R"(Copy what is read of a buffer below a loop, in each iteration before it is read.

The blocks below the loop read the copy.
The copy is one block that copies a whole region, marked with the annotation "auto_copy".

Args:
    loop: a loop around the block.
    block: a block that reads the buffer.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
