#include "search/strategy/tile_factors.h"

#include "schedule/primitives/fuse.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/split.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

TileFactors TileFactors::of(const Trace& trace) {
  TileFactors result;
  size_t sample = 0;
  const std::vector<const Step*> steps = trace.steps();
  for (size_t number : indices_of(steps)) {
    const Step& step = *steps[number];
    if (const auto* tile = step.instruction.as<SamplePerfectTile>(); tile && tile->decision.value) {
      int64_t extent = 1;
      for (int64_t factor : *tile->decision.value) extent *= factor;
      if (extent >= 1) {
        for (size_t i = 0; i < step.outputs.size(); ++i) result.values[step.outputs[i]] = {result.tiles.size(), i};
        const int64_t most = tile->max_innermost_factor < 0 ? extent : tile->max_innermost_factor;
        result.tiles.push_back({sample, 0, extent, tile->n, most, *tile->decision.value});
      }
    } else if (const auto* split = step.instruction.as<Split>()) {
      for (size_t i = 0; i < split->factors.items.size() && i < step.outputs.size(); ++i) {
        const auto* value = std::get_if<ExprRV>(&split->factors.items[i]);
        auto* factor = value ? find_value(result.values, value->index) : nullptr;
        if (!factor) continue;
        result.loops[step.outputs[i]] = {*factor};
        result.tiles[factor->tile].split = number;
      }
    } else if (const auto* fuse = step.instruction.as<Fuse>()) {
      Factors all;
      const bool known = std::ranges::all_of(fuse->loops.items, [&](const LoopRV& loop) {
        auto* of_loop = find_value(result.loops, loop.index);
        if (of_loop) append_range(all, *of_loop);
        return of_loop != nullptr;
      });
      if (known && !step.outputs.empty()) result.loops[step.outputs[0]] = std::move(all);
    }
    if (step.is_sampling()) ++sample;
  }
  return result;
}

std::optional<int64_t> TileFactors::product(const Factors& factors, const Tilings& tilings) {
  int64_t product = 1;
  for (const auto& [tile, position] : factors) {
    if (!tilings[tile] || position >= tilings[tile]->size()) return std::nullopt;
    product *= (*tilings[tile])[position];
  }
  return product;
}

}  // namespace tilewright::search
