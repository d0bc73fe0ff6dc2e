#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct AnnotateBufferAccess {
  BlockRV block;
  int64_t buffer_index = 0;
  std::string buf_type;
  IndexFunction gen_new_ranges;
  using Members = Fields<&AnnotateBufferAccess::block, &AnnotateBufferAccess::buffer_index,
                         &AnnotateBufferAccess::buf_type, &AnnotateBufferAccess::gen_new_ranges>;
  using Returns = None;
  static constexpr std::string_view kAmongInputs = "buffer_index buf_type gen_new_ranges";
  static constexpr std::string_view kSide = "buf_type";
  static constexpr std::string_view kDoc = R"(Declare which region of a buffer a block touches.

For accesses whose region cannot be worked out, as those whose indices go through floats. Where the real region is
known it decides; a declaration that some access provably leaves is refused.

Args:
    block: the block.
    buffer_index: the position among its reads or writes.
    buf_type: "read" or "write".
    gen_new_ranges: a function of the block's axes that gives, for each dimension of the buffer, an index or a pair of
        a start and an end.)";
};

}  // namespace tilewright::schedule
