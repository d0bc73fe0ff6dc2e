// The factors of the tiles of a design space, and which loops have products of them as extents: what follows from the
// decisions without doing any step again.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "schedule/trace.h"

namespace tilewright::search {

struct TileFactors {
  struct Tile {
    size_t sample;  ///< number among the sampling steps
    size_t split;   ///< the step that splits a loop by its factors; 0: none
    int64_t extent, count, most_innermost;
    std::vector<int64_t> factors;  ///< factors in the design space itself
  };
  struct Factor {
    size_t tile, position;
  };
  using Factors = std::vector<Factor>;
  /// By tile; none where it is not decided.
  using Tilings = std::vector<std::optional<std::vector<int64_t>>>;

  std::vector<Tile> tiles;
  std::unordered_map<uint32_t, Factor> values;  ///< by handle
  std::unordered_map<uint32_t, Factors> loops;  ///< by handle

  /// The factors in the trace of a design space, whose tiles have decisions.
  static TileFactors of(const schedule::Trace& trace);

  /// None where a factor is not decided.
  static std::optional<int64_t> product(const Factors& factors, const Tilings& tilings);
};

}  // namespace tilewright::search
