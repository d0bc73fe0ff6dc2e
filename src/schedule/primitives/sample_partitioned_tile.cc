// Samples n factors whose product is the extent of a loop, those from partition_pos on together a multiple of
// innerpart_factor; uniformly among all such lists of factors.
//
// Requires  P1 n is at least 1
//           P2 partition_pos is a position among the factors, innerpart_factor at least 1
//           P3 the extent is at least 1
//           P4 a decision has n factors
#include "schedule/primitives/sample_partitioned_tile.h"

#include "ir/build.h"
#include "schedule/primitive.h"
#include "schedule/tiling.h"

namespace tilewright::schedule {
namespace {

/// The product from position `from` on; nothing where a factor is not positive or the product too large.
std::optional<int64_t> product_from(const std::vector<int64_t>& factors, size_t from) {
  int64_t product = 1;
  for (size_t i = from; i < factors.size(); ++i) {
    if (factors[i] < 1 || __builtin_mul_overflow(product, factors[i], &product)) return std::nullopt;
  }
  return product;
}

}  // namespace

Result<Plan> plan(const State& state, const SamplePartitionedTile& sample) {
  TW_TRY(place, state.find(sample.loop));
  int64_t n = sample.n, factor = sample.innerpart_factor;
  if (n < 1 || n > 64) {
    return refuse("sample_partitioned_tile/P1", "a loop cannot be tiled by " + std::to_string(n) + " factors", {},
                  "use 1 to 64 factors");
  }
  if (sample.partition_pos < 0 || sample.partition_pos >= n || factor < 1) {
    return refuse("sample_partitioned_tile/P2",
                  "the factors from position " + std::to_string(sample.partition_pos) + " of " + std::to_string(n) +
                      " on cannot have a product that " + std::to_string(factor) + " divides",
                  {}, "partition_pos is from 0 to n - 1, and innerpart_factor at least 1");
  }
  auto position = static_cast<size_t>(sample.partition_pos);
  const std::optional<std::vector<int64_t>>& given = sample.decision.value;
  if (given && given->size() != static_cast<size_t>(n)) {
    return refuse("sample_partitioned_tile/P4",
                  "the decision has " + std::to_string(given->size()) + " factors instead of " + std::to_string(n), {},
                  "give one factor for each of the n loops");
  }
  auto extent = const_int(place.loop().extent);
  if (extent && *extent < 1) {
    return refuse("sample_partitioned_tile/P3", describe(place) + " has no iterations to tile", place,
                  "a loop with an extent of at least 1 has factors");
  }
  Plan plan;
  std::vector<int64_t> factors(static_cast<size_t>(n), 1);
  if (!extent || *extent % factor != 0) {
    factors[0] = -1;
  } else if (given) {
    auto inner = product_from(*given, position), all = product_from(*given, 0);
    if (inner && all == *extent && *inner % factor == 0) {
      factors = *given;
    } else {
      factors[position] = factor;
      factors[0] = position == 0 ? *extent : *extent / factor;
    }
  } else {
    Random random = state.random();
    factors = sample_partitioned_tiling(random, *extent, n, position, factor);
    plan.random = random;
  }
  for (int64_t sampled : factors) {
    plan.outputs.push_back(sampled == -1 ? std::nullopt : std::optional(Handle::value(sampled)));
  }
  SamplePartitionedTile recorded = sample;
  recorded.decision.value = std::move(factors);
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
