#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct FuseReductionEpilogue {
  BlockRV reduction_block;
  BlockRV epilogue_block;
  using Members = Fields<&FuseReductionEpilogue::reduction_block, &FuseReductionEpilogue::epilogue_block>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Initialize a sum with the operand of a later addition.

Floating-point sums are added up in another order than before.

Args:
    reduction_block: a sum, whose result only the other block reads.
    epilogue_block: stores the result plus something; afterwards it is gone, and the sum goes where it stored.)";
};

}  // namespace tilewright::schedule
