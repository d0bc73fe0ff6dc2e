// Samples one of several integers, with given weights.
//
// Requires  P1 as many weights as candidates, at least one
//           P2 weights are finite, not negative, not all 0
//           P3 the decision is a position among the candidates
#include <cmath>

#include "schedule/primitive.h"
#include "schedule/primitives/sample_categorical.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const SampleCategorical& sample) {
  size_t n = sample.candidates.size();
  if (n == 0 || sample.probs.size() != n) {
    return refuse("sample_categorical/P1",
                  std::to_string(n) + " candidates and " + std::to_string(sample.probs.size()) + " probabilities", {},
                  "give each candidate one weight");
  }
  double total = 0;
  for (double p : sample.probs) total += p >= 0 && std::isfinite(p) ? p : std::nan("");
  if (!(total > 0)) {
    return refuse("sample_categorical/P2", "the probabilities must be finite, not negative, and not all 0", {},
                  "pass one weight for each candidate, such as [0.5, 0.5]");
  }
  Plan plan;
  int64_t decision = 0;
  if (sample.decision.value) {
    decision = *sample.decision.value;
    if (decision < 0 || decision >= static_cast<int64_t>(n)) {
      return refuse(
          "sample_categorical/P3",
          "decision " + std::to_string(decision) + " is not a position among " + std::to_string(n) + " candidates", {},
          "the decision is the index of the candidate, not its value");
    }
  } else {
    Random random = state.random();
    decision = static_cast<int64_t>(random.categorical(sample.probs));
    plan.random = random;
  }
  plan.outputs.push_back(Handle::value(sample.candidates[decision]));
  SampleCategorical recorded = sample;
  recorded.decision.value = decision;
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
