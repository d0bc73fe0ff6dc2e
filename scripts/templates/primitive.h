#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct @Name @{<LoopRV or BlockRV><loop or block>;
using Members = Fields<&@Name @ ::<loop or block>>;
using Returns = <None, LoopRV, BlockRV or std::vector of these>;
static constexpr std::string_view kDoc = R"(<One sentence: what happens to the program.>

Args:
    <loop or block>: <which one>.)";
};  // namespace tilewright::schedule

}  // namespace tilewright::schedule
