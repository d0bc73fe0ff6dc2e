// Draws another number of threads: v = sample_categorical(...), split(loop, [None, v]), bind(inner, "threadIdx.x").
#include <unordered_map>

#include "schedule/primitives/bind.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/split.h"
#include "search/mutators/categorical.h"
#include "search/mutators/mutators.h"

namespace tilewright::search {

using schedule::Bind;
using schedule::ExprRV;
using schedule::Split;

Result<std::optional<Trace>> MutateThreadBinding::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  std::unordered_map<uint32_t, uint32_t> sizes;  // the inner loop of such a split, and the drawn size
  std::vector<size_t> draws;
  for (const schedule::Step* step : trace.steps()) {
    if (const auto* split = step->instruction.as<Split>()) {
      const auto& factors = split->factors.items;
      if (factors.size() != 2 || !std::holds_alternative<schedule::None>(factors[0])) continue;
      if (const auto* value = std::get_if<ExprRV>(&factors[1])) sizes[step->outputs[1]] = value->index;
    } else if (const auto* bind = step->instruction.as<Bind>()) {
      auto size = sizes.find(bind->loop.index);
      if (bind->thread_axis != "threadIdx.x" || size == sizes.end()) continue;
      auto draw = categorical_step(trace, size->second);
      if (draw && has_alternative(*trace[*draw].instruction.as<schedule::SampleCategorical>())) {
        draws.push_back(*draw);
      }
    }
  }
  if (draws.empty()) return std::optional<Trace>();
  return draw_other(trace, draws[random.below(draws.size())], random);
}

}  // namespace tilewright::search
