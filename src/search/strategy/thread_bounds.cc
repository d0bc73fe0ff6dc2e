#include "search/strategy/thread_bounds.h"

#include <algorithm>
#include <array>
#include <set>

#include "schedule/primitives/annotate.h"
#include "schedule/primitives/bind.h"
#include "schedule/tiling.h"
#include "support/ranges.h"
#include "target/thread_axis.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// VerifyGPUCode allows so many along an axis.
constexpr int64_t kMostVirtualThreads = 8;
/// After so many tries the postprocessors decide.
constexpr int kMaxSamples = 200;

}  // namespace

ThreadBounds::ThreadBounds(const Schedule& space, const Target& target)
    : tiles_(TileFactors::of(space.trace())), most_shared_(target.max_shared_memory_per_block) {
  if (tiles_.tiles.empty()) return;
  note_threads(space.trace(), target);
  if (most_shared_ > 0) shared_ = SharedBounds(space, tiles_);
}

void ThreadBounds::note_threads(const Trace& trace, const Target& target) {
  std::array<TileFactors::Factors, 3> threads;  // factors of the loops bound since the last annotation, by dimension
  bool is_known = true;
  std::set<uint32_t> of_warps;  // blocks that warps execute
  int64_t low = 0;
  for (const Step* step : trace.steps()) {
    const Instruction& instruction = step->instruction;
    if (const auto* bind = instruction.as<Bind>()) {
      const auto axis = ThreadAxis::parse(bind->thread_axis);
      auto* found = find_value(tiles_.loops, bind->loop.index);
      if (axis && found && axis->level == ThreadAxis::Level::kVirtual) {
        bounds_.push_back({*found, 1, 1, kMostVirtualThreads});
      } else if (axis && axis->level == ThreadAxis::Level::kThread) {
        is_known = is_known && found;
        TileFactors::Factors& all = threads[static_cast<size_t>(axis->dimension)];
        if (is_known) append_range(all, *found);
      }
    } else if (const auto* annotation = instruction.as<Annotate>()) {
      const auto* block = std::get_if<BlockRV>(&annotation->block_or_loop);
      const auto* number = annotation->ann_val.as<int64_t>();
      if (block && annotation->ann_key == "warp_execution") of_warps.insert(block->index);
      if (number && annotation->ann_key == "meta_schedule.thread_extent_low_inclusive") low = *number;
      if (!number || annotation->ann_key != "meta_schedule.thread_extent_high_inclusive") continue;
      const bool is_of_warps = block && of_warps.contains(block->index);
      TileFactors::Factors all;
      for (size_t i = is_of_warps ? 1 : 0; i < threads.size(); ++i) append_range(all, threads[i]);
      const int64_t most = target.max_threads_per_block;
      if (is_known && !all.empty()) {
        bounds_.push_back({all, is_of_warps ? std::max<int64_t>(target.thread_warp_size, 1) : 1, low,
                           most > 0 && !is_of_warps ? std::min(most, *number) : *number});
      }
      threads = {};
      is_known = true;
    }
  }
}

ThreadBounds::Excess ThreadBounds::excess(const TileFactors::Tilings& tilings) const {
  for (const Bound& bound : bounds_) {
    const auto product = TileFactors::product(bound.factors, tilings);
    if (product && (*product * bound.times < bound.low || *product * bound.times > bound.high)) return Excess::kThreads;
  }
  return most_shared_ > 0 && shared_.bytes(tilings) > most_shared_ ? Excess::kSharedMemory : Excess::kNone;
}

ThreadBounds::Excess ThreadBounds::excess(const std::vector<Value>& decisions) const {
  TileFactors::Tilings tilings(tiles_.tiles.size());
  for (size_t i : indices_of(tilings)) {
    const size_t sample = tiles_.tiles[i].sample;
    const auto* list = sample < decisions.size() ? decisions[sample].as<Value::List>() : nullptr;
    if (!list) continue;
    std::vector<int64_t> factors;
    for (const Value& factor : *list) {
      if (const auto* number = factor.as<int64_t>()) factors.push_back(*number);
    }
    if (factors.size() == list->size()) tilings[i] = std::move(factors);
  }
  return excess(tilings);
}

const char* ThreadBounds::name_of(Excess excess) {
  if (excess == Excess::kNone) return "";
  return excess == Excess::kThreads ? "ThreadBounds" : "SharedMemoryBounds";
}

void ThreadBounds::add(Refusals& refusals, Excess excess) {
  refusals.add(name_of(excess), excess == Excess::kThreads
                                    ? "the tiles give a block too few or too many threads"
                                    : "the tiles that a block keeps in shared memory are larger than that memory");
}

int64_t ThreadBounds::sample(Random& random, std::vector<Value>& decisions, Refusals& refusals) const {
  const auto is_open = [&](const TileFactors::Tile& tile) {
    return tile.sample >= decisions.size() || decisions[tile.sample].is_none();
  };
  if (none_of(tiles_.tiles, is_open)) return 0;
  TileFactors::Tilings tilings(tiles_.tiles.size());
  int64_t refused = 0;
  for (int tries = 0; tries < kMaxSamples; ++tries) {
    for (size_t i : indices_of(tilings)) {
      const TileFactors::Tile& tile = tiles_.tiles[i];
      if (is_open(tile)) tilings[i] = sample_tiling(random, tile.extent, tile.count, tile.most_innermost);
    }
    const Excess found = excess(tilings);
    if (found == Excess::kNone) break;
    add(refusals, found);
    ++refused;
  }
  for (size_t i : indices_of(tilings)) {
    if (!tilings[i]) continue;
    const size_t sample = tiles_.tiles[i].sample;
    if (decisions.size() <= sample) decisions.resize(sample + 1);
    Value::List list(tilings[i]->size());
    for (size_t k : indices_of(list)) list[k].data = (*tilings[i])[k];
    decisions[sample].data = std::move(list);
  }
  return refused;
}

}  // namespace tilewright::search
