#include "search/session/finals.h"

#include <algorithm>
#include <utility>

#include "search/database/database.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Rounds from which the bootstrap's interval says something.
constexpr size_t kEnoughRounds = 5;
/// Factor by which the ratio of fewer rounds may be off.
constexpr double kDoubt = 1.1;

}  // namespace

PairedRatio ratio_in_finals(const FinalsResult& finals, size_t first, size_t second) {
  std::vector<double> one, other;
  for (const bool all : {false, true}) {
    one.clear();
    other.clear();
    for (size_t round = 0; round < std::min(finals.seconds[first].size(), finals.seconds[second].size()); ++round) {
      if (!all && (finals.disturbed[first][round] || finals.disturbed[second][round])) continue;
      one.push_back(finals.seconds[first][round]);
      other.push_back(finals.seconds[second][round]);
    }
    if (one.size() >= kEnoughRounds) break;
  }
  PairedRatio ratio = paired_ratio(one, other);
  if (one.size() < kEnoughRounds) {
    ratio.low /= kDoubt;
    ratio.high *= kDoubt;
  }
  return ratio;
}

size_t winner_of(const FinalsResult& finals, const std::vector<size_t>& standing, size_t count) {
  size_t winner = standing.front();
  for (const size_t kernel : standing) {
    if (ratio_in_finals(finals, winner, kernel).low > 1) winner = kernel;
  }
  // The others are ordered by their ratio to the same kernel: few rounds do not separate two good ones, but rank them.
  const size_t base = winner;
  double best = 1;
  for (size_t kernel = 0; kernel < count; ++kernel) {
    const bool is_clear =
        all_of(standing, [&](size_t each) { return each != kernel && ratio_in_finals(finals, each, kernel).low > 1; });
    if (!is_clear) continue;
    const double ratio = ratio_in_finals(finals, base, kernel).median;
    if (ratio <= best) continue;
    best = ratio;
    winner = kernel;
  }
  return winner;
}

std::vector<double> seconds_in_finals(const FinalsResult& finals, size_t kernel) {
  std::vector<double> undisturbed;
  for (size_t round : indices_of(finals.seconds[kernel])) {
    if (!finals.disturbed[kernel][round]) undisturbed.push_back(finals.seconds[kernel][round]);
  }
  return undisturbed.empty() ? finals.seconds[kernel] : undisturbed;
}

FinalTime time_in_finals(const FinalsResult& finals, std::string kind, int64_t record, size_t kernel, size_t winner) {
  Record timed;
  timed.seconds = seconds_in_finals(finals, kernel);
  return {std::move(kind), record, timed.median(), ratio_in_finals(finals, kernel, winner)};
}

}  // namespace tilewright::search
