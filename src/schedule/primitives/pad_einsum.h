#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct PadEinsum {
  BlockRV block;
  std::vector<int64_t> padding;
  using Members = Fields<&PadEinsum::block, &PadEinsum::padding>;
  using Returns = None;
  static constexpr std::string_view kDoc =
      R"(Round the domains of a block's axes up, with copies of its buffers that are padded with zeros.

Each buffer BUFFER that an enlarged axis indexes gets a copy BUFFER_pad: of what the block reads before it, of what it
writes behind it, back to the buffer.

Args:
    block: a block that accesses each buffer at one element, whose indices are axes or constants.
    padding: for each axis the number whose multiple its extent becomes; 1 leaves it as it is.)";
};

}  // namespace tilewright::schedule
