// Which candidates are measured, and in which order.
//
//   strategy->pre_tuning({.max_trials = 64, ...});
//   while (auto candidates = strategy->generate_measure_candidates())   // none: finished
//     strategy->notify_runner_results(*candidates, measure(*candidates));
//   strategy->post_tuning();
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "search/cost_model/cost_model.h"
#include "search/database/tuning_database.h"
#include "search/measure_candidate.h"
#include "search/tune_context.h"

namespace tilewright::search {

struct TuningPlan {
  int64_t max_trials = 0;
  int64_t num_trials_per_iter = 64;
  std::vector<schedule::Schedule> design_spaces;
  std::shared_ptr<TuningDatabase> database;  ///< null where a strategy does without
  std::shared_ptr<CostModel> cost_model;     ///< likewise
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  virtual Status initialize(const TuneContext& context) = 0;
  /// Starts a search. An error when one is under way already.
  virtual Status pre_tuning(TuningPlan plan) = 0;
  /// The next batch, which may be empty; none: the search is over.
  virtual Result<std::optional<std::vector<MeasureCandidate>>> generate_measure_candidates() = 0;
  virtual Status notify_runner_results(const std::vector<MeasureCandidate>& candidates,
                                       const std::vector<RunnerResult>& results) = 0;
  /// Ends the search.
  virtual Status post_tuning() = 0;
  virtual std::shared_ptr<SearchStrategy> clone() const = 0;
};

}  // namespace tilewright::search
