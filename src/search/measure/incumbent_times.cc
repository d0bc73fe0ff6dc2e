#include "search/measure/incumbent_times.h"

#include <algorithm>
#include <cstddef>

#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// The least pause between two slices, in units of the duration of a slice.
constexpr double kPause = 40;
/// A slice is recent for the longer of these: some seconds, and some multiple of its duration. The speed of a host
/// drifts over minutes; disturbances last milliseconds.
constexpr double kRecentSeconds = 0.25, kRecentSlices = 5 * kPause;
/// The number of slices that are kept.
constexpr size_t kMost = 7;

}  // namespace

bool IncumbentTimes::is_recent(const Timed& slice, double now) const {
  return now - slice.end <= std::max(kRecentSeconds, kRecentSlices * (slice.end - slice.begin));
}

bool IncumbentTimes::is_known(double now) const {
  return any_of(slices_, [&](const Timed& slice) { return slice.is_undisturbed && is_recent(slice, now); });
}

bool IncumbentTimes::is_due(double now) const {
  if (slices_.empty() || !is_recent(slices_.back(), now)) return true;
  return now - end_ >= kPause * (end_ - begin_);
}

void IncumbentTimes::add(double begin, double end, double seconds, bool is_undisturbed) {
  begin_ = begin;
  end_ = end;
  // A disturbed slice is better than none, and worse than any undisturbed one.
  if (is_undisturbed)
    std::erase_if(slices_, [](const Timed& slice) { return !slice.is_undisturbed; });
  else if (!is_known(end))
    slices_.clear();
  else
    return;
  slices_.push_back({begin, end, seconds, is_undisturbed});
  if (slices_.size() > kMost) slices_.pop_front();
}

std::vector<double> IncumbentTimes::recent(double now) const {
  std::vector<double> seconds;
  for (const Timed& slice : slices_)
    if (is_recent(slice, now)) seconds.push_back(slice.seconds);
  return seconds;
}

double IncumbentTimes::median(double now) const {
  std::vector<double> seconds = recent(now);
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + (std::ssize(seconds) - 1) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

double IncumbentTimes::fastest(double now) const {
  const std::vector<double> seconds = recent(now);
  return seconds.empty() ? 0 : *std::ranges::min_element(seconds);
}

void FastestBeside::add(double candidate_seconds, double incumbent_seconds) {
  share = std::min(share, candidate_seconds / incumbent_seconds);
  seconds = std::min(seconds, candidate_seconds);
}

double FastestBeside::now(double incumbent_seconds) const {
  return std::min(incumbent_seconds, std::max(share * incumbent_seconds, seconds));
}

}  // namespace tilewright::search
