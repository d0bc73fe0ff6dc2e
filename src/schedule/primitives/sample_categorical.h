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
  static constexpr std::string_view kDoc = R"(Sample one of several integers.

Args:
    candidates: the integers to choose from.
    probs: as many weights, not negative; they need not add up to 1.
    decision: take this position in candidates instead of sampling.

Returns:
    The sampled value, to be passed on (to split, annotate). int() reads it, which ties the Python code to this
    sample.)";
};

}  // namespace tilewright::schedule
