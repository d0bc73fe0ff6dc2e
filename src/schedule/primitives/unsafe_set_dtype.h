#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct UnsafeSetDType {
  BlockRV block;
  int64_t buffer_index = 0;
  std::string dtype;
  using Members = Fields<&UnsafeSetDType::block, &UnsafeSetDType::buffer_index, &UnsafeSetDType::dtype>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Store the elements of a buffer in another type.

Unsafe: what is stored is converted, and back where it is loaded, so the program computes something else wherever the
new type does not hold the values exactly.

Args:
    block: a block that writes the buffer.
    buffer_index: the position among the block's writes, of a buffer that a block allocates.
    dtype: the new type of an element.)";
};

}  // namespace tilewright::schedule
