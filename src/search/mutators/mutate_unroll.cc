// Samples another limit for unrolling: that of an annotation whose value is a categorical sample.
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/sample_categorical.h"
#include "search/mutators/categorical.h"
#include "search/mutators/mutators.h"

namespace tilewright::search {

using schedule::Annotate;

Result<std::optional<Trace>> MutateUnroll::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  std::vector<size_t> samples;
  for (const schedule::Step* step : trace.steps()) {
    const auto* annotate = step->instruction.as<Annotate>();
    if (!annotate) continue;
    if (annotate->ann_key != "meta_schedule.unroll_explicit" && annotate->ann_key != "meta_schedule.unroll_implicit") {
      continue;
    }
    const auto* value = annotate->ann_val.as<schedule::ExprRV>();
    auto sample = value ? categorical_step(trace, value->index) : std::nullopt;
    if (sample && has_alternative(*trace[*sample].instruction.as<schedule::SampleCategorical>())) {
      samples.push_back(*sample);
    }
  }
  if (samples.empty()) return std::optional<Trace>();
  return sample_other(trace, samples[random.below(samples.size())], random);
}

}  // namespace tilewright::search
