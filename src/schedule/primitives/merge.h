#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Merge {
  Star<LoopRV> loops;
  using Members = Fields<&Merge::loops>;
  using Returns = LoopRV;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Merge neighboring loop nests into one.

Args:
    *loops: two loops or more, each the innermost to be merged of its nest. All loops from there up to what is around
        all of them become one nest, at the place of the last, with the bodies one after another.

Returns:
    The innermost of the new loops.)";
};

}  // namespace tilewright::schedule
