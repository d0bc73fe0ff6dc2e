#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReverseCacheRead {
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  std::string storage_scope;
  std::vector<int64_t> dim_order;
  using Members = Fields<&ReverseCacheRead::block, &ReverseCacheRead::read_buffer_index,
                         &ReverseCacheRead::storage_scope, &ReverseCacheRead::dim_order>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr std::string_view kDoc =
      R"(Gather what a block reads through other buffers into a new one, indexed by the block's axes.

A block that reads ``B[I[vi], vk]`` reads ``B_local[vi, vk]`` then. Where the block reads under a condition, as around
padding, the copy does, too.

SparseTIR, arXiv 2207.04606.

Args:
    block: a block that reads one element of the buffer in each instance.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...
    dim_order: positions of the axes that index the new buffer; by default those that the indices are made of, in the
        order of the block. It may name more.

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

}  // namespace tilewright::schedule
