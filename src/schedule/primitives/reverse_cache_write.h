#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReverseCacheWrite {
  BlockRV block;
  BufferIndex write_buffer_index = int64_t{0};
  std::string storage_scope;
  std::vector<int64_t> dim_order;
  using Members = Fields<&ReverseCacheWrite::block, &ReverseCacheWrite::write_buffer_index,
                         &ReverseCacheWrite::storage_scope, &ReverseCacheWrite::dim_order>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr std::string_view kDoc =
      R"(Let a block accumulate in a new buffer indexed by its axes, and scatter the results.

A block that adds to ``C[I[vi], vk]`` adds to ``C_local[vi, vk]``, which begins with the neutral element. Inside of the
loops that select elements only, what has come together is then combined with the old buffer: once for each element,
not in each step.

SparseTIR, arXiv 2207.04606.

Args:
    block: a block without init that accumulates into one element of the buffer in each instance.
    write_buffer_index: which of its writes: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...
    dim_order: positions of the axes that index the new buffer; by default those that the indices are made of, in the
        order of the block.

Returns:
    The block that combines, named like the new buffer: BUFFER_SCOPE. BUFFER_SCOPE_init stands before.)";
};

}  // namespace tilewright::schedule
