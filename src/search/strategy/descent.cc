#include "search/strategy/descent.h"

#include <algorithm>
#include <cmath>

#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// The number of measured points whose neighbors are visited.
constexpr size_t kCenters = 3;
/// A center that is so much slower than the best is left alone.
constexpr double kNear = 1.25;
/// Neighbors that have to be measured before their times say anything.
constexpr size_t kLeastTimes = 6;
constexpr double kWorthwhile = 0.01;
constexpr double kLeastHope = 0.05;
/// A failure counts as a time that is so many times as long.
constexpr double kFailure = 4;

}  // namespace

bool Descent::is_hopeless(const Center& center) {
  const std::vector<double>& ratios = center.ratios;
  if (ratios.size() < kLeastTimes) return false;
  double mean = 0, square = 0;
  for (double ratio : ratios) mean += ratio / static_cast<double>(ratios.size());
  for (double ratio : ratios) square += (ratio - mean) * (ratio - mean) / static_cast<double>(ratios.size() - 1);
  double spread = std::max(std::sqrt(square), kWorthwhile);
  double chance = 0.5 * std::erfc((mean + kWorthwhile) / spread / std::sqrt(2.0));
  return chance * static_cast<double>(center.left) < kLeastHope;
}

double Descent::ratio_of(const Center& center, double seconds) {
  return std::log(std::min(seconds / center.seconds, kFailure));
}

void Descent::measured(const Point& point, double seconds) {
  if (auto* neighbor = find_value(neighbors_, point.hash)) {
    Center& center = centers_.at(*neighbor);
    if (center.left > 0) --center.left;
    center.ratios.push_back(ratio_of(center, seconds));
    center.closed = center.closed || center.left == 0 || is_hopeless(center);
  }
  if (!std::isfinite(seconds)) return;
  auto [place, is_new] = centers_.try_emplace(point.hash, Center{point, seconds});
  if (!is_new) return;
  // The hash decides between equally fast ones, so that the order of arrival does not matter.
  auto behind = [&](const Center* center) {
    return center->seconds > seconds || (center->seconds == seconds && point.hash < center->point.hash);
  };
  best_.insert(find_if(best_, behind), &place->second);
  if (best_.size() <= kCenters) return;
  // A point that left the list of the best is never a center again, so its program can be dropped.
  best_.back()->point.schedule = best_.back()->point.schedule.rewound(0);
  best_.pop_back();
}

const Point* Descent::center() {
  for (Center* center : best_) {
    if (!center->closed && center->seconds <= kNear * best_[0]->seconds) return &center->point;
  }
  return nullptr;
}

void Descent::expanded(const Hash128& hash, const std::vector<Hash128>& neighbors) {
  Center& center = centers_.at(hash);
  center.expanded = true;
  center.left = neighbors.size();
  center.ratios.clear();
  for (const auto& [other, known] : centers_) {
    if (known.point.is_neighbor_of(center.point)) center.ratios.push_back(ratio_of(center, known.seconds));
  }
  center.closed = neighbors.empty() || is_hopeless(center);
  for (const Hash128& neighbor : neighbors) neighbors_.insert_or_assign(neighbor, hash);
}

std::vector<Variation> Descent::around(const Point& center, size_t limit) {
  Trace trace = center.schedule.trace().without_postproc();
  std::vector<std::vector<schedule::Value>> ways;
  for (size_t step : trace.sampling_steps()) ways.push_back(alternatives(trace[step]));
  // One way of each decision after the other, so that a limit takes from all of them.
  std::vector<Variation> result;
  for (size_t way = 0, more = 1; more > 0 && result.size() < limit; ++way) {
    more = 0;
    for (size_t sample = 0; sample < ways.size() && result.size() < limit; ++sample) {
      if (way >= ways[sample].size()) continue;
      result.push_back({&center, sample, ways[sample][way]});
      ++more;
    }
  }
  return result;
}

}  // namespace tilewright::search
