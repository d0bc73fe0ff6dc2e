#include "search/strategy/trial_counter.h"

#include <fmt/format.h>

namespace tilewright::search {

Status TrialCounter::start(const TuningPlan& plan) {
  if (is_running_) {
    return argument_error("search/under-way", "a search is under way already", "call post_tuning() first");
  }
  if (plan.max_trials < 0 || plan.num_trials_per_iter < 1 || plan.design_spaces.empty()) {
    return argument_error("search/plan",
                          fmt::format("a search of {} trials, {} in a batch, in {} spaces", plan.max_trials,
                                      plan.num_trials_per_iter, plan.design_spaces.size()),
                          "a batch has at least 1 trial, and there is at least 1 design space");
  }
  *this = {};
  is_running_ = true;
  max_trials_ = plan.max_trials;
  num_trials_per_iter_ = plan.num_trials_per_iter;
  return Ok{};
}

Status TrialCounter::check() const {
  if (is_running_) return Ok{};
  return argument_error("search/not-started", "no search is under way", "call pre_tuning() first");
}

Status TrialCounter::finish() {
  TW_RETURN_IF_ERROR(check());
  is_running_ = false;
  return Ok{};
}

}  // namespace tilewright::search
