#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct StorageAlign {
  BlockRV block;
  int64_t buffer_index = 0;
  int64_t axis = 0;
  int64_t factor = 1;
  int64_t offset = 0;
  using Members = Fields<&StorageAlign::block, &StorageAlign::buffer_index, &StorageAlign::axis, &StorageAlign::factor,
                         &StorageAlign::offset>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Pad a buffer in memory, so that its parts do not fall on the same lines.

The stride of the axis, in elements, becomes the next number that is `offset` modulo `factor`. With an offset, rows of a
power of two do not all meet in the same set of a cache. The padding is an annotation, "buffer_dim_align", until the
program is lowered; the buffer's shape stays.

Args:
    block: a block that writes the buffer.
    buffer_index: which of its writes.
    axis: the axis whose stride is padded; -2 is that of the rows of a matrix.
    factor: what the stride is counted in.
    offset: what is left of it.)";
};

}  // namespace tilewright::schedule
