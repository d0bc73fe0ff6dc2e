// How far a task of a session is, and what comes next. What every search decides is decided here, whoever samples
// candidates, measures them, and gets their results: `Session` for the program of tw.tune, `TaskScheduler` of
// tilewright.meta_schedule for tasks whose parts users may have written.
//
//   TaskProgress task(64, {.patience = 20});
//   while (task.wants_more()) {
//     report the next task.due(share) results; task.reported(that many);
//     sample a batch;  task.sampled(8);
//     measure it;      task.submitted(8), then task.measured(seconds) for each
//   }
//
// `share` is how much of the latest batch must be measured before a strategy samples the next one. At 1 it knows all
// results. At 0 it samples the next batch before it knows any result of the latest one, so sampling and measuring
// overlap; at 3/4 the next batch is sampled and built while the last quarter of the latest one is measured. The share
// counts candidates, not time, so the same results give the same candidates on a machine of any speed.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>

#include "ir/fields.h"

namespace tilewright::search {

/// When a task ends before its trials are used up.
struct StopRules {
  int64_t patience = 0;       ///< trials without a faster candidate; 0: no limit
  double target_seconds = 0;  ///< fast enough; 0: nothing is
  double bound_seconds = 0;   ///< no kernel is faster on this machine; over within 3 % of that; 0: not known
  using Members = Fields<&StopRules::patience, &StopRules::target_seconds, &StopRules::bound_seconds>;
};

class TaskProgress {
 public:
  explicit TaskProgress(int64_t most_trials, StopRules rules = {}) : most_trials_(most_trials), rules_(rules) {}

  /// Whether another batch is to be sampled.
  bool wants_more() const { return stop_reason_.empty() && !is_exhausted_ && !is_used_up(); }
  /// Whether as many candidates as there may be were measured or are under way.
  bool is_used_up() const { return trials_ + under_way_ >= most_trials_; }
  /// Results that have to be reported before the next batch is sampled: of all batches but the latest all, and that
  /// share of the latest.
  int64_t due(double share) const;

  /// The strategy gave a batch of so many candidates; none: it is out of candidates, as it is after many empty ones.
  void sampled(std::optional<int64_t> candidates);
  void reported(int64_t results);
  void submitted(int64_t candidates = 1) { under_way_ += candidates; }
  /// One of those is neither measured nor failed: the search was over before.
  void dropped() { --under_way_; }
  /// The seconds of a call, infinity for a failure; whether it is the fastest so far.
  bool measured(double seconds);
  /// Counts a trial of an earlier part of the session, without checking whether the task ends.
  bool known(double seconds);
  /// Records a time that is no trial, and returns whether it is the fastest so far.
  bool beats(double seconds);
  /// Ends the task if a rule says so.
  void look_whether_to_stop();

  int64_t trials() const { return trials_; }
  double best_seconds() const { return best_seconds_; }
  bool is_exhausted() const { return is_exhausted_; }
  /// "target", "roofline", "patience", or what stop() was given; empty before that.
  const std::string& stop_reason() const { return stop_reason_; }
  void stop(std::string reason) { stop_reason_ = std::move(reason); }
  /// Returns why nothing more is sampled, where no rule has ended the task.
  std::string end_reason() const;

 private:
  int64_t most_trials_;
  StopRules rules_;
  int64_t trials_ = 0, under_way_ = 0;
  int64_t trials_at_best_ = 0;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  std::deque<int64_t> batches_;  ///< candidates of each that has results which were not reported
  int64_t reported_ = 0;         ///< reported results of the first of these batches
  int empty_ = 0;                ///< batches without a candidate, one after the other
  bool is_exhausted_ = false;
  std::string stop_reason_;
};

}  // namespace tilewright::search
