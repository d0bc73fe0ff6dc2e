#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct EnterPostproc {
  using Members = Fields<>;
  using Returns = None;
  static constexpr int kRequired = 0;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Mark where the steps of postprocessing begin: what can be asked for a trace without them stops here.)";
};

Result<Plan> plan(const State& state, const EnterPostproc& instruction);

}  // namespace tilewright::schedule
