#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct RollingBuffer {
  BlockRV block;
  BufferIndex write_buffer_index = int64_t{0};
  using Members = Fields<&RollingBuffer::block, &RollingBuffer::write_buffer_index>;
  using Returns = None;
  static constexpr std::string_view kDoc =
      R"(Let a producer keep what the next tile of its consumer reads again, in a buffer that goes round.

Neighboring tiles of a stencil overlap. The buffer shrinks to one tile in the dimension of the outermost loop along
which they do, and each tile computes only what the one before has not. The blocks then depend on the order of the
loops: take other steps first.

Args:
    block: the producer, below the loop over the tiles.
    write_buffer_index: which of its writes: a position, or the buffer's name.)";
};

}  // namespace tilewright::schedule
