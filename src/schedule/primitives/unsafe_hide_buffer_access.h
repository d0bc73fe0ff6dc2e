#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct UnsafeHideBufferAccess {
  BlockRV block;
  std::string buf_type;
  std::vector<int64_t> buf_index_array;
  using Members = Fields<&UnsafeHideBufferAccess::block, &UnsafeHideBufferAccess::buf_type,
                         &UnsafeHideBufferAccess::buf_index_array>;
  using Returns = None;
  static constexpr std::string_view kAmongInputs = "buf_type buf_index_array";
  static constexpr std::string_view kDoc = R"(Remove regions from the declared accesses of a block.

Unsafe: the block still touches them. Steps that follow decide by what the block does where that is known; a program
that touches what it does not declare is refused when it is verified or compiled.

Args:
    block: the block.
    buf_type: "read" or "write".
    buf_index_array: the positions among its reads or writes.)";
};

}  // namespace tilewright::schedule
