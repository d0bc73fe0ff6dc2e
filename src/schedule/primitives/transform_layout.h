#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct TransformLayout {
  BlockRV block;
  TouchedBuffer buffer;
  IndexFunction index_map;
  bool assume_injective_transform = false;
  using Members = Fields<&TransformLayout::block, &TransformLayout::buffer, &TransformLayout::index_map,
                         &TransformLayout::assume_injective_transform>;
  using Returns = None;
  static constexpr int kRequired = 3;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Store the elements of an allocated buffer in another order.

Every access of the buffer follows; loops and blocks stay as they are.

Args:
    block: a block that touches the buffer.
    buffer: ("read", position), ("write", position), the buffer's name, or the buffer.
    index_map: from old indices to new ones, as in lambda i, j: (j // 16, i, j % 16), of +, -, *, // and %; different
        indices must have different images.
    assume_injective_transform: let the new buffer have elements that no access reaches, as where the division leaves a
        remainder.)";
};

}  // namespace tilewright::schedule
