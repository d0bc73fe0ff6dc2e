#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SampleCategorical {
  std::vector<int64_t> candidates;
  std::vector<double> probs;
  Decision<int64_t> decision;
  using Members = Fields<&SampleCategorical::candidates, &SampleCategorical::probs, &SampleCategorical::decision>;
  using Returns = ExprRV;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kSample;
  static constexpr std::string_view kDoc = R"(Draw one of some integers.

Args:
    candidates: the integers to choose from.
    probs: as many weights, not negative; they need not add up to 1.
    decision: take this position in candidates instead of drawing.

Returns:
    The drawn value, to be passed on (to split, annotate). Reading it with int() ties the Python code to this draw.)";
};

Result<Plan> plan(const State& state, const SampleCategorical& instruction);

}  // namespace tilewright::schedule
