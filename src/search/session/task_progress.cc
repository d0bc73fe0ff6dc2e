#include "search/session/task_progress.h"

#include <algorithm>

namespace tilewright::search {
namespace {

/// So near to what the machine allows nothing more is to be gained.
constexpr double kNearBound = 1.03;
/// A candidate much faster than the bound shows that the bound does not hold: it counts skipped terms, or the data are
/// cached.
constexpr double kBeyondBound = 0.9;
/// Batches without a candidate that a strategy may give before it counts as out of candidates.
constexpr int kMostEmpty = 100;

}  // namespace

int64_t TaskProgress::due(double share) const {
  if (batches_.empty()) return 0;
  int64_t due = static_cast<int64_t>(share * static_cast<double>(batches_.back()));
  for (size_t i = 0; i + 1 < batches_.size(); ++i) due += batches_[i];
  return std::max<int64_t>(0, due - reported_);
}

void TaskProgress::sampled(std::optional<int64_t> candidates) {
  empty_ = candidates == 0 ? empty_ + 1 : 0;
  is_exhausted_ = !candidates || empty_ > kMostEmpty;
  if (candidates && *candidates > 0) batches_.push_back(*candidates);
}

void TaskProgress::reported(int64_t results) {
  reported_ += results;
  while (!batches_.empty() && reported_ >= batches_.front()) {
    reported_ -= batches_.front();
    batches_.pop_front();
  }
}

bool TaskProgress::known(double seconds) {
  ++trials_;
  return beats(seconds);
}

bool TaskProgress::beats(double seconds) {
  if (!(seconds < best_seconds_)) return false;
  best_seconds_ = seconds;
  trials_at_best_ = trials_;
  return true;
}

bool TaskProgress::measured(double seconds) {
  --under_way_;
  const bool is_best = known(seconds);
  look_whether_to_stop();
  return is_best;
}

void TaskProgress::look_whether_to_stop() {
  if (!stop_reason_.empty()) return;
  if (rules_.target_seconds > 0 && best_seconds_ <= rules_.target_seconds) {
    stop_reason_ = "target";
  } else if (best_seconds_ <= kNearBound * rules_.bound_seconds &&
             best_seconds_ >= kBeyondBound * rules_.bound_seconds) {
    stop_reason_ = "roofline";
  } else if (rules_.patience > 0 && trials_ - trials_at_best_ >= rules_.patience) {
    stop_reason_ = "patience";
  }
}

std::string TaskProgress::end_reason() const {
  if (!stop_reason_.empty()) return stop_reason_;
  return is_exhausted_ ? "exhausted" : "trials";
}

}  // namespace tilewright::search
