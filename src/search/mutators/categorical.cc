#include "search/mutators/categorical.h"

#include <numeric>

#include "schedule/primitives/sample_categorical.h"

namespace tilewright::search {

using schedule::SampleCategorical;
using schedule::Value;

namespace {

/// The weights of all positions but the one that was sampled.
std::vector<double> other_weights(const SampleCategorical& sample) {
  std::vector<double> weights = sample.probs;
  weights.resize(sample.candidates.size());
  auto sampled = sample.decision.value;
  if (sampled && *sampled >= 0 && *sampled < static_cast<int64_t>(weights.size())) weights[*sampled] = 0;
  return weights;
}

}  // namespace

std::optional<size_t> categorical_step(const Trace& trace, uint32_t value) {
  for (size_t step : trace.sampling_steps()) {
    const auto* sample = trace[step].instruction.as<SampleCategorical>();
    if (sample && sample->decision.value && trace[step].outputs == std::vector<uint32_t>{value}) return step;
  }
  return std::nullopt;
}

bool has_alternative(const SampleCategorical& sample) {
  std::vector<double> weights = other_weights(sample);
  return std::accumulate(weights.begin(), weights.end(), 0.0) > 0;
}

Result<std::optional<Trace>> sample_other(const Trace& trace, size_t step, Random& random) {
  const auto& sample = *trace[step].instruction.as<SampleCategorical>();
  int64_t position = static_cast<int64_t>(random.categorical(other_weights(sample)));
  TW_TRY(changed, trace.with_decision(step, Value{position}));
  return std::optional<Trace>(std::move(changed));
}

}  // namespace tilewright::search
