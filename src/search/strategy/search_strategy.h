// Which candidates are measured, and in which order.
//
//   strategy->pre_tuning({.max_trials = 64, ...});
//   while (auto candidates = strategy->generate_measure_candidates())   // none: finished
//     strategy->notify_runner_results(*candidates, measure(*candidates));
//   strategy->post_tuning();
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "search/cost_model/cost_model.h"
#include "search/database/tuning_database.h"
#include "search/measure_candidate.h"
#include "search/strategy/refusals.h"
#include "search/tune_context.h"

namespace tilewright::search {

struct TuningPlan {
  int64_t max_trials = 0;
  int64_t num_trials_per_iter = 64;
  Schedules design_spaces;
  std::shared_ptr<TuningDatabase> database;  ///< null where a strategy does without
  std::shared_ptr<CostModel> cost_model;     ///< null where a strategy does without
  /// Asked before a candidate is handed out, where it is known to be worth no trial: an error says why.
  std::function<Status(const MeasureCandidate&)> refuse{};
};

class SearchStrategy {
 public:
  using Kind = SearchStrategy;
  virtual ~SearchStrategy() = default;
  virtual Status initialize(const TuneContext& context) = 0;
  /// Starts a search. An error when one is under way already.
  virtual Status pre_tuning(TuningPlan plan) = 0;
  /// The next batch, which may be empty; none: the search is over.
  virtual Result<std::optional<MeasureCandidates>> generate_measure_candidates() = 0;
  virtual Status notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) = 0;
  /// Ends the search.
  virtual Status post_tuning() = 0;
  /// Whether the next batch may be requested while the last one is being measured. Results are then reported in the
  /// order of batches, one batch later.
  virtual bool runs_ahead() const { return false; }
  /// Whether results of a batch may be reported in parts, from the first on, and the next batch be requested between
  /// them.
  virtual bool takes_parts() const { return false; }
  virtual SampleCounts sample_counts() const { return {}; }
  /// Where the time of generate_measure_candidates() went, by the published names; none counts twice.
  virtual std::map<std::string, double> seconds() const { return {}; }
  virtual std::shared_ptr<SearchStrategy> clone() const = 0;
};

}  // namespace tilewright::search
