// Samples another number of threads: v = sample_categorical(...), split(loop, [None, v]), bind(inner, "threadIdx.x").
#include <unordered_map>

#include "schedule/primitives/bind.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/split.h"
#include "search/mutators/categorical.h"
#include "search/mutators/mutators.h"
#include "support/ranges.h"

namespace tilewright::search {

using schedule::Bind;
using schedule::ExprRV;
using schedule::Split;

Result<std::optional<Trace>> MutateThreadBinding::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  std::unordered_map<uint32_t, uint32_t> sizes;  // the inner loop of such a split, and the sampled size
  std::vector<size_t> samples;
  for (const schedule::Step* step : trace.steps()) {
    if (const auto* split = step->instruction.as<Split>()) {
      const auto& factors = split->factors.items;
      if (factors.size() != 2 || !std::holds_alternative<schedule::None>(factors[0])) continue;
      if (const auto* value = std::get_if<ExprRV>(&factors[1])) sizes[step->outputs[1]] = value->index;
    } else if (const auto* bind = step->instruction.as<Bind>()) {
      auto* size = find_value(sizes, bind->loop.index);
      if (bind->thread_axis != "threadIdx.x" || !size) continue;
      auto sample = categorical_step(trace, *size);
      if (sample && has_alternative(*trace[*sample].instruction.as<schedule::SampleCategorical>())) {
        samples.push_back(*sample);
      }
    }
  }
  if (samples.empty()) return std::optional<Trace>();
  return sample_other(trace, samples[random.below(samples.size())], random);
}

}  // namespace tilewright::search
