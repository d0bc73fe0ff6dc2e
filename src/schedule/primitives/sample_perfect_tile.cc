// Samples n factors whose product is the extent of a loop, uniformly among all such lists of factors.
//
// Requires  P1 n is at least 1
//           P2 max_innermost_factor is -1 or at least 1; with n = 1 it is -1 or no limit
//           P3 the extent is at least 1
//           P4 a decision has n positive factors
#include "schedule/primitives/sample_perfect_tile.h"

#include "ir/build.h"
#include "schedule/primitive.h"
#include "schedule/tiling.h"

namespace tilewright::schedule {
namespace {

/// Adapts factors to another extent, from the innermost one outwards: a factor that does not divide the remaining
/// extent takes all of it, and the outermost gets the quotient. So decisions for another extent stay usable.
std::vector<int64_t> repair(std::vector<int64_t> factors, int64_t extent) {
  int64_t left = extent;
  for (size_t i = factors.size(); i-- > 1;) {
    if (left % factors[i] != 0) factors[i] = left;
    left /= factors[i];
  }
  factors[0] = left;
  return factors;
}

}  // namespace

Result<Plan> plan(const State& state, const SamplePerfectTile& sample) {
  TW_TRY(place, state.find(sample.loop));
  int64_t n = sample.n, limit = sample.max_innermost_factor;
  if (n < 1 || n > 64) {
    return refuse("sample_perfect_tile/P1", "a loop cannot be tiled by " + std::to_string(n) + " factors", {},
                  "use 1 to 64 factors");
  }
  if (limit < -1 || limit == 0 || (n == 1 && limit != -1)) {
    return refuse("sample_perfect_tile/P2",
                  "max_innermost_factor is " + std::to_string(limit) + " with n = " + std::to_string(n), {},
                  "it is at least 1, or -1 for no limit; a single factor is the extent itself, so it takes no limit");
  }
  const std::optional<std::vector<int64_t>>& given = sample.decision.value;
  if (given) {
    bool fits = given->size() == static_cast<size_t>(n);
    for (size_t i = 1; i < given->size(); ++i) fits &= (*given)[i] >= 1;
    if (!fits) {
      return refuse("sample_perfect_tile/P4",
                    "the decision has " + std::to_string(given->size()) + " factors, some possibly not positive", {},
                    "it needs " + std::to_string(n) + " positive factors");
    }
  }
  Plan plan;
  std::vector<int64_t> factors(n, 1);
  if (auto extent = const_int(place.loop().extent)) {
    if (*extent < 1) {
      return refuse("sample_perfect_tile/P3", describe(place) + " has no iterations to tile", place,
                    "a loop with an extent of at least 1 has factors");
    }
    if (given) {
      factors = repair(*given, *extent);
    } else {
      Random random = state.random();
      factors = sample_tiling(random, *extent, n, limit == -1 ? *extent : limit);
      plan.random = random;
    }
  } else {
    factors[0] = -1;
  }
  for (int64_t factor : factors) {
    plan.outputs.push_back(factor == -1 ? std::nullopt : std::optional(Handle::value(factor)));
  }
  SamplePerfectTile recorded = sample;
  recorded.decision.value = std::move(factors);
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
