// Moves a factor from one tile of a loop to another, or samples another vector length for a cooperative fetch.
//
//   sample_perfect_tile(loop, n=4, decision=[4, 32, 4, 1])  ->  [4, 8, 16, 1]: the factor 4 went from the second to the
//                                                               third
//
// The innermost tile stays within max_innermost_factor (-1: no limit), the inner part of a partitioned tile a multiple
// of its factor.
#include <numeric>

#include "schedule/primitives/annotate.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/sample_partitioned_tile.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/tiling.h"
#include "search/mutators/categorical.h"
#include "search/mutators/mutators.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using schedule::Annotate;
using schedule::SampleCategorical;
using schedule::SamplePartitionedTile;
using schedule::SamplePerfectTile;
using schedule::Value;
using Tiles = std::vector<int64_t>;

struct Limits {
  int64_t innermost = -1;            ///< extent of the last tile; -1: none
  size_t inner_from = 0;             ///< tiles from here on together are ...
  int64_t inner_is_multiple_of = 1;  ///< ... a multiple of this
};

const Tiles* tiles_of(const schedule::Instruction& instruction, Limits& limits) {
  if (const auto* perfect = instruction.as<SamplePerfectTile>()) {
    limits = {perfect->max_innermost_factor, 0, 1};
    return perfect->decision.value ? &*perfect->decision.value : nullptr;
  }
  if (const auto* parts = instruction.as<SamplePartitionedTile>()) {
    limits = {-1, static_cast<size_t>(parts->partition_pos), parts->innerpart_factor};
    return parts->decision.value ? &*parts->decision.value : nullptr;
  }
  return nullptr;
}

/// The factors above 1 that may move.
Tiles movable(const Tiles& tiles, size_t from, size_t to, const Limits& limits) {
  Tiles factors;
  for (int64_t factor : schedule::divisors(tiles[from])) {
    if (factor == 1) continue;
    if (to + 1 == tiles.size() && limits.innermost != -1 && tiles[to] * factor > limits.innermost) break;
    if (from >= limits.inner_from && to < limits.inner_from) {
      int64_t inner = std::accumulate(tiles.begin() + limits.inner_from, tiles.end(), int64_t{1}, std::multiplies<>());
      if (inner / factor % limits.inner_is_multiple_of != 0) continue;
    }
    factors.push_back(factor);
  }
  return factors;
}

struct Move {
  size_t from, to;
  Tiles factors;
};

std::vector<Move> moves(const Tiles& tiles, const Limits& limits) {
  std::vector<Move> result;
  for (size_t from : indices_of(tiles)) {
    for (size_t to : indices_of(tiles)) {
      if (from == to || tiles[from] <= 1) continue;
      Tiles factors = movable(tiles, from, to, limits);
      if (!factors.empty()) result.push_back({from, to, std::move(factors)});
    }
  }
  return result;
}

}  // namespace

Result<std::optional<Trace>> MutateTileSize::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  std::vector<size_t> places;
  for (size_t step : trace.sampling_steps()) {
    Limits limits;
    const Tiles* tiles = tiles_of(trace[step].instruction, limits);
    if (tiles && !moves(*tiles, limits).empty()) places.push_back(step);
  }
  for (const schedule::Step* step : trace.steps()) {
    const auto* annotate = step->instruction.as<Annotate>();
    if (!annotate || annotate->ann_key != "meta_schedule.cooperative_fetch") continue;
    const auto* value = annotate->ann_val.as<schedule::ExprRV>();
    auto sample = value ? categorical_step(trace, value->index) : std::nullopt;
    if (sample && has_alternative(*trace[*sample].instruction.as<SampleCategorical>())) places.push_back(*sample);
  }
  if (places.empty()) return std::optional<Trace>();
  size_t place = places[random.below(places.size())];
  Limits limits;
  const Tiles* tiles = tiles_of(trace[place].instruction, limits);
  if (!tiles) return sample_other(trace, place, random);

  std::vector<Move> all = moves(*tiles, limits);
  const Move& move = all[random.below(all.size())];
  int64_t factor = move.factors[random.below(move.factors.size())];
  Tiles changed = *tiles;
  changed[move.from] /= factor;
  changed[move.to] *= factor;
  Value::List decision(changed.size());
  for (size_t i : indices_of(changed)) decision[i].data = changed[i];
  TW_TRY(mutated, trace.with_decision(place, Value{std::move(decision)}));
  return std::optional<Trace>(std::move(mutated));
}

}  // namespace tilewright::search
