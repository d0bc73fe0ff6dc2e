// Draws another limit for unrolling: that of an annotation that a categorical draw feeds.
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/sample_categorical.h"
#include "search/mutators/categorical.h"
#include "search/mutators/mutators.h"

namespace tilewright::search {

using schedule::Annotate;

Result<std::optional<Trace>> MutateUnroll::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  std::vector<size_t> draws;
  for (const schedule::Step* step : trace.steps()) {
    const auto* annotate = step->instruction.as<Annotate>();
    if (!annotate) continue;
    if (annotate->ann_key != "meta_schedule.unroll_explicit" && annotate->ann_key != "meta_schedule.unroll_implicit") {
      continue;
    }
    const auto* value = annotate->ann_val.as<schedule::ExprRV>();
    auto draw = value ? categorical_step(trace, value->index) : std::nullopt;
    if (draw && has_alternative(*trace[*draw].instruction.as<schedule::SampleCategorical>())) {
      draws.push_back(*draw);
    }
  }
  if (draws.empty()) return std::optional<Trace>();
  return draw_other(trace, draws[random.below(draws.size())], random);
}

}  // namespace tilewright::search
