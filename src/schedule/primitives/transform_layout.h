#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct TransformLayout {
  BlockRV block;
  TouchedBuffer buffer;
  IndexFunction index_map;
  PadValue pad_value;
  bool assume_injective_transform = false;
  OmitEmpty<ExprRV> values;
  using Members =
      Fields<&TransformLayout::block, &TransformLayout::buffer, &TransformLayout::index_map,
             &TransformLayout::pad_value, &TransformLayout::assume_injective_transform, &TransformLayout::values>;
  using Returns = None;
  static constexpr int kRequired = 3;
  static constexpr std::string_view kAmongInputs = "index_map";
  static constexpr std::string_view kDoc = R"(Store the elements of a buffer in another order.

Every access of the buffer follows; loops and blocks stay as they are. A buffer that is a parameter of the function
changes its shape there too: callers pass arrays of the new layout.

Where the new layout has elements that stand for none of the old ones, pad_value says what they hold. If nothing in the
function writes the buffer, a new block buffer_NAME_assumptions states it by T.assume, and callers have to see to it. If
loops write the buffer element by element in order, they run over the new elements instead and choose the value by
T.if_then_else. Otherwise a new block buffer_NAME_padding writes it.

Args:
    block: a block that touches the buffer.
    buffer: ("read", position), ("write", position), the buffer's name, or the buffer.
    index_map: from old indices to new ones, as in lambda i, j: (j // 16, i, j % 16), of +, -, *, // and %; different
        indices must have different images. Sizes that it divides by are taken to be positive. lambda *indices takes
        as many as the buffer has. Where it gives T.AXIS_SEPARATOR among the indices, set_axis_separator follows.
    pad_value: a number of the buffer's type, an expression, or a function of the new indices that gives one; it may
        load elements of the buffer, by the old indices.
    assume_injective_transform: let the new buffer have elements that no access reaches, as where the division leaves a
        remainder, without a value for them.
    values: sampled integers; the last parameters of index_map stand for them, as in lambda i, j, f: (j // f, i, j % f).)";
};

}  // namespace tilewright::schedule
