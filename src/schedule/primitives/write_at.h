#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct WriteAt {
  LoopRV loop;
  BlockRV block;
  BufferIndex write_buffer_index = int64_t{0};
  std::string storage_scope;
  using Members = Fields<&WriteAt::loop, &WriteAt::block, &WriteAt::write_buffer_index, &WriteAt::storage_scope>;
  using Returns = BlockRV;
  static constexpr std::string_view kDoc =
      R"(Let the blocks below a loop write a new buffer, and copy that back in each iteration after they have.

The copy back stands after the last block that writes.
The copy is one block that copies a whole region, marked with the annotation "auto_copy".

Args:
    loop: a loop around the block.
    block: a block that writes the buffer.
    write_buffer_index: which of its writes: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
