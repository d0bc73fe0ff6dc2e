#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct TransformBlockLayout {
  BlockRV block;
  IndexFunction index_map;
  using Members = Fields<&TransformBlockLayout::block, &TransformBlockLayout::index_map>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Transform the axes of a block.

The loops around the block are replaced by one for each new index, ax0, ax1, ...; the block's axes by v0, v1, ...

Args:
    block: the only block inside its loops, with each axis bound to one of them.
    index_map: from the block's axes to the new ones, as in lambda i, j: i * 16 + j, of +, -, *, // and %, that takes
        them one to one onto a box and mixes no spatial axes with reduction axes. lambda *axes takes all of them.)";
};

}  // namespace tilewright::schedule
