#include "search/rules/multi_level_tiling_wide_vector.h"

#include "ir/build.h"
#include "schedule/primitives/split.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// The loop drives the last index of what the block writes.
bool drives_last_index(const Place& block, const For& loop) {
  const BlockRealize* realize = block.tree->realize_at(block.at);
  const auto& region = block.block().writes[0]->region;
  if (region.empty()) return false;
  for (size_t i : indices_of(realize->iter_values)) {
    if (realize->iter_values[i] != loop.loop_var) continue;
    if (block.block().iter_vars[i]->var == region.back()->min) return true;
  }
  return false;
}

}  // namespace

Result<MultiLevelTiling::SplitLoop> MultiLevelTilingWideVector::split_loop(Schedule& schedule, BlockRV block,
                                                                           LoopRV loop, size_t n) const {
  TW_TRY(place, schedule.state().find(block));
  TW_TRY(at, schedule.state().find(loop));
  if (!drives_last_index(place, at.loop())) return MultiLevelTiling::split_loop(schedule, block, loop, n);
  int64_t lanes = std::max<int64_t>(1, options_.vector_length_in_bits / place.block().writes[0]->buffer->dtype.bits);
  auto extent = const_int(at.loop().extent);
  if (!extent || *extent <= lanes) {
    std::vector<Factor> factors(n, Factor(int64_t{1}));
    factors.back() = extent ? Factor(*extent) : Factor(lanes);
    if (!extent) factors.front() = None{};
    TW_TRY(loops, schedule.apply(Split{.loop = loop, .factors = {factors}}));
    return SplitLoop{std::move(factors), std::move(loops)};
  }
  TW_TRY(parts, schedule.apply(Split{.loop = loop, .factors = {{None{}, lanes}}}));
  SplitLoop result;
  if (n == 2) {
    result = {{None{}, lanes}, parts};
    return result;
  }
  TW_TRY(outer, MultiLevelTiling::split_loop(schedule, block, parts[0], n - 1));
  result = std::move(outer);
  result.factors.push_back(lanes);
  result.loops.push_back(parts[1]);
  return result;
}

}  // namespace tilewright::search
