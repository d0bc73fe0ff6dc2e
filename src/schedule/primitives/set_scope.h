#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SetScope {
  BlockRV block;
  BufferIndex buffer_index = int64_t{0};
  std::string storage_scope;
  using Members = Fields<&SetScope::block, &SetScope::buffer_index, &SetScope::storage_scope>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Move a buffer to another memory scope; it is then named BUFFER_SCOPE.

Args:
    block: a block that writes the buffer.
    buffer_index: which of its writes: a position, or the buffer's name.
    storage_scope: where it lives: "global", "local" (registers on a CPU), "shared", ...)";
};

}  // namespace tilewright::schedule
