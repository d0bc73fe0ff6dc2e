#include "search/measure/race.h"

#include <algorithm>
#include <cmath>

#include "support/ranges.h"

namespace tilewright::search {

bool is_undisturbed(const Slice& slice, int threads) {
  // The two clocks are read one after the other; below 20 us their distance would be more than 2 %.
  constexpr double kRatio = 1.02, kClockSkew = 4e-7;
  if (slice.involuntary_switches > 0) return false;
  return threads > 1 || slice.wall <= slice.cpu * kRatio + kClockSkew;
}

int64_t Race::next_calls() const {
  if (over_) return 0;
  const auto fill = [&](double seconds) {
    // Capped, for kernels that the clock cannot see.
    return std::clamp<int64_t>(std::llround(seconds / std::max(fastest_, 1e-9)), 1, 1'000'000);
  };
  switch (stage_) {
    case Stage::kFirst:
      return 1;
    case Stage::kWarmUp:
      return fill(rules_.warm_up_seconds - warmed_);
    case Stage::kTimed:
      return std::max(fill(rules_.slice_seconds), rules_.least_calls);
  }
  return 0;
}

void Race::observe(const Slice& slice) {
  if (over_) return;
  const double seconds = slice.wall / static_cast<double>(std::max<int64_t>(slice.calls, 1));
  fastest_ = std::min(fastest_, seconds);
  spent_ += slice.wall;
  if (stage_ == Stage::kFirst) {
    if (fastest_ > rules_.first_stop_ratio * rules_.incumbent + rules_.cold_slack) return end(Verdict::kSlow);
    stage_ = Stage::kWarmUp;
  } else if (stage_ == Stage::kWarmUp) {
    warmed_ += slice.wall;
    // Three slices at most: a kernel that the clock cannot see never fills the time.
    if (warmed_ >= 0.9 * rules_.warm_up_seconds || ++warm_up_slices_ == 3) stage_ = Stage::kTimed;
  } else if (rules_.keeps_all || is_undisturbed(slice, threads_)) {
    group_.push_back(seconds);
  } else {
    ++group_rejected_;
    ++rejected_;
  }
  decide();
}

void Race::observe_probe(double fraction) {
  if (fraction < kProbeShortfall) {
    rejected_ += static_cast<int>(group_.size());
  } else {
    append_range(kept_, group_);
  }
  group_.clear();
  group_rejected_ = 0;
  decide();
}

/// Returns how many times as slow as the incumbent the fastest of so many slices may be of a candidate that may be the
/// faster one all the same.
double Race::may_be_slower(int32_t slices) const {
  return 1 + (rules_.contend_ratio - 1) * rules_.screen_slices / std::max(slices, rules_.screen_slices);
}

void Race::decide() {
  if (over_) return;
  if (fastest_ > rules_.stop_ratio * rules_.incumbent && spent_ >= rules_.doubt_seconds) return end(Verdict::kSlow);
  // A first call alone is no time to remember a kernel by.
  if (spent_ >= rules_.budget_seconds && warmed_ > 0)
    return end(fastest_ > rules_.contend_ratio * rules_.incumbent ? Verdict::kScreened : Verdict::kContender);
  if (stage_ != Stage::kTimed) return;
  const auto count = static_cast<int32_t>(accepted());
  if (count >= rules_.screen_slices && fastest_ > may_be_slower(count) * rules_.incumbent)
    return end(Verdict::kScreened);
  // Up to three times as many slices as wanted: a machine that is busy all the time shall not hold up the search.
  if (count >= rules_.full_slices || rejected_ >= 2 * rules_.full_slices) end(Verdict::kContender);
}

void Race::end(Verdict verdict) {
  over_ = true;
  verdict_ = verdict;
}

std::vector<double> Race::seconds() const {
  std::vector<double> all = kept_;
  append_range(all, group_);
  if (all.empty() && std::isfinite(fastest_)) all.push_back(fastest_);
  return all;
}

}  // namespace tilewright::search
