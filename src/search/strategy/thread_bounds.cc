#include "search/strategy/thread_bounds.h"

#include <algorithm>
#include <unordered_map>

#include "schedule/primitives/annotate.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/split.h"
#include "schedule/tiling.h"
#include "target/thread_axis.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// VerifyGPUCode allows so many along an axis.
constexpr int64_t kMostVirtualThreads = 8;
/// After so many samples the postprocessors decide.
constexpr int kMaxSamples = 200;

}  // namespace

ThreadBounds::ThreadBounds(const Trace& trace, const Target& target) {
  std::unordered_map<uint32_t, Factor> values;  // that are factors of a tile
  std::unordered_map<uint32_t, Factors> loops;  // whose extents are products of such
  Factors threads;                              // of the loops bound since the last annotation
  bool is_known = true, is_of_warps = false;
  int64_t low = 0;
  size_t sample = 0;
  for (const Step* step : trace.steps()) {
    const Instruction& instruction = step->instruction;
    if (const auto* tile = instruction.as<SamplePerfectTile>(); tile && tile->decision.value) {
      int64_t extent = 1;
      for (int64_t factor : *tile->decision.value) extent *= factor;
      if (extent >= 1) {
        for (size_t i = 0; i < step->outputs.size(); ++i) values[step->outputs[i]] = {tiles_.size(), i};
        tiles_.push_back(
            {sample, extent, tile->n, tile->max_innermost_factor < 0 ? extent : tile->max_innermost_factor});
      }
    } else if (const auto* split = instruction.as<Split>()) {
      for (size_t i = 0; i < split->factors.items.size() && i < step->outputs.size(); ++i) {
        const auto* value = std::get_if<ExprRV>(&split->factors.items[i]);
        if (const auto found = value ? values.find(value->index) : values.end(); found != values.end())
          loops[step->outputs[i]] = {found->second};
      }
    } else if (const auto* fuse = instruction.as<Fuse>()) {
      Factors all;
      const bool known = std::ranges::all_of(fuse->loops.items, [&](const LoopRV& loop) {
        const auto found = loops.find(loop.index);
        if (found != loops.end()) all.insert(all.end(), found->second.begin(), found->second.end());
        return found != loops.end();
      });
      if (known && !step->outputs.empty()) loops[step->outputs[0]] = std::move(all);
    } else if (const auto* bind = instruction.as<Bind>()) {
      const auto axis = ThreadAxis::parse(bind->thread_axis);
      const auto found = loops.find(bind->loop.index);
      if (axis && found != loops.end() && axis->level == ThreadAxis::Level::kVirtual) {
        bounds_.push_back({found->second, 1, kMostVirtualThreads});
      } else if (axis && axis->level == ThreadAxis::Level::kThread) {
        is_known = is_known && found != loops.end();
        if (is_known) threads.insert(threads.end(), found->second.begin(), found->second.end());
      }
    } else if (const auto* annotation = instruction.as<Annotate>()) {
      const auto* number = annotation->ann_val.as<int64_t>();
      if (number && annotation->ann_key == "meta_schedule.thread_extent_low_inclusive") low = *number;
      if (number && annotation->ann_key == "meta_schedule.thread_extent_high_inclusive") {
        const int64_t most = target.max_threads_per_block;
        if (is_known && !threads.empty())
          bounds_.push_back({threads, low, most > 0 ? std::min(most, *number) : *number});
        threads.clear();
        is_known = true;
      }
      // The threads of a warp are none of these loops.
      is_of_warps |= annotation->ann_key == "warp_execution";
    }
    if (step->is_sampling()) ++sample;
  }
  if (is_of_warps) bounds_.clear();
  if (bounds_.empty()) tiles_.clear();
}

bool ThreadBounds::hold(const Tilings& tilings) const {
  return std::ranges::all_of(bounds_, [&](const Bound& bound) {
    int64_t product = 1;
    for (const auto& [tile, position] : bound.factors) {
      if (!tilings[tile] || position >= tilings[tile]->size()) return true;  // decided elsewhere
      product *= (*tilings[tile])[position];
    }
    return bound.low <= product && product <= bound.high;
  });
}

int64_t ThreadBounds::sample(Random& random, std::vector<Value>& decisions) const {
  const auto is_open = [&](const Tile& tile) {
    return tile.sample >= decisions.size() || decisions[tile.sample].is_none();
  };
  if (std::ranges::none_of(tiles_, is_open)) return 0;
  Tilings tilings(tiles_.size());
  int64_t refused = 0;
  for (int tries = 0; tries < kMaxSamples; ++tries) {
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const Tile& tile = tiles_[i];
      if (is_open(tile)) tilings[i] = sample_tiling(random, tile.extent, tile.count, tile.most_innermost);
    }
    if (hold(tilings)) break;
    ++refused;
  }
  for (size_t i = 0; i < tiles_.size(); ++i) {
    if (!tilings[i]) continue;
    if (decisions.size() <= tiles_[i].sample) decisions.resize(tiles_[i].sample + 1);
    Value::List list(tilings[i]->size());
    for (size_t k = 0; k < list.size(); ++k) list[k].data = (*tilings[i])[k];
    decisions[tiles_[i].sample].data = std::move(list);
  }
  return refused;
}

}  // namespace tilewright::search
