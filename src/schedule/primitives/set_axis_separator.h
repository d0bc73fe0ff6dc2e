#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SetAxisSeparator {
  BlockRV block;
  TouchedBuffer buffer;
  std::vector<int64_t> axis_separators;
  using Members = Fields<&SetAxisSeparator::block, &SetAxisSeparator::buffer, &SetAxisSeparator::axis_separators>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Set the axis separators of a buffer.

The axes between two separators form one dimension of the memory, if the target has memory of several dimensions. Other
targets store all axes as one dimension, and ignore the separators.

Args:
    block: a block that touches the buffer.
    buffer: ("read", position), ("write", position), the buffer's name, or the buffer.
    axis_separators: the numbers of axes before which there is a separation, ascending.)";
};

}  // namespace tilewright::schedule
