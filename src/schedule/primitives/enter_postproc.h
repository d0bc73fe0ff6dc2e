#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct EnterPostproc {
  using Members = Fields<>;
  using Returns = None;
  static constexpr std::string_view kDoc =
      R"(Mark where the steps of postprocessing begin: what can be asked for a trace without them stops here.)";
};

}  // namespace tilewright::schedule
