#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct EnterPostproc {
  using Members = Fields<>;
  using Returns = None;
  static constexpr std::string_view kDoc =
      R"(Mark where the steps of postprocessing begin. A trace without postprocessing ends here.)";
};

}  // namespace tilewright::schedule
