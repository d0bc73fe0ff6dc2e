// Evolution: candidates that the cost model likes have children, the best of all generations are measured.
//
//   population = the best that were measured + points at random
//   for each generation:   predict; keep the best that are new; each place of the next generation takes a parent with a
//                          probability by its score, and changes a decision of it (a mutator) or takes it as it is
//   picked = the best that are new, and a share of random points
//
// A child shares with its parent all steps before the decision that was changed. In a FunctionSpace, later steps depend
// on sampled values, so the function runs again with the decisions of the mutated trace. Decisions that no mutator
// handles are replaced by another alternative of their sampling step. Running Python is slow, so a generation has fewer
// places there.
//
// All random numbers follow from (seed, round, generation, place), whichever thread uses them: the same seed gives the
// same candidates on any number of threads, as long as the cost model and the measurements are the same.
#pragma once

#include <functional>
#include <unordered_set>

#include "search/module_equality.h"
#include "search/space/function_space.h"
#include "search/strategy/candidates.h"
#include "search/strategy/trial_counter.h"

namespace tilewright::search {

struct EvolutionarySearchOptions {
  int64_t population_size = 512;     ///< places of a generation
  double init_measured_ratio = 0.2;  ///< share of the initial population from the best measured candidates
  int64_t init_min_unmeasured = 50;  ///< points at random that there have to be
  int64_t max_fail_count = 5;        ///< batches of points at random that may all be refused
  int64_t genetic_num_iters = 4;
  double genetic_mutate_prob = 0.85;       ///< probability that a child differs from its parent
  int64_t genetic_max_fail_count = 10;     ///< children that may be refused before the parent stays
  double eps_greedy = 0.05;                ///< share of the picked that are points at random
  int64_t num_empty_iters_before_end = 5;  ///< batches without anything new after which the search is over
  using Members = Fields<&EvolutionarySearchOptions::population_size, &EvolutionarySearchOptions::init_measured_ratio,
                         &EvolutionarySearchOptions::init_min_unmeasured, &EvolutionarySearchOptions::max_fail_count,
                         &EvolutionarySearchOptions::genetic_num_iters, &EvolutionarySearchOptions::genetic_mutate_prob,
                         &EvolutionarySearchOptions::genetic_max_fail_count, &EvolutionarySearchOptions::eps_greedy>;
};

class EvolutionarySearch final : public SearchStrategy {
 public:
  /// ArgumentError "search/probability" for a share or probability outside of [0, 1], "search/plan" for sizes below 1.
  using Options = EvolutionarySearchOptions;
  static Status check(const Options& options);
  explicit EvolutionarySearch(const Options& options) : options_(options) {}

  Status initialize(const TuneContext& context) override;
  Status pre_tuning(TuningPlan plan) override;
  Result<std::optional<MeasureCandidates>> generate_measure_candidates() override;
  Status notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) override;
  Status post_tuning() override;
  std::map<std::string, double> seconds() const override { return seconds_; }
  bool takes_parts() const override { return true; }
  std::shared_ptr<SearchStrategy> clone() const override { return std::make_shared<EvolutionarySearch>(options_); }

  const Refusals& refusals() const { return refusals_; }

  // The steps of a round, for tests and reports.
  using Population = Schedules;
  Result<Population> pick_best_from_database(size_t count);
  Result<Population> sample_init_population(size_t count);
  Result<Population> evolve_with_cost_model(Population population, size_t count);
  Population pick_with_eps_greedy(const Population& unmeasured, const Population& bests, size_t count);

 private:
  struct Child;
  Random stream(uint64_t step, uint64_t index) const;
  Result<std::vector<double>> scores_of(const Population& population);
  Result<Population> next_generation(const Population& population, const std::vector<double>& scores);
  Status try_once(Child& child, const Population& population, const std::vector<double>& scores);
  Result<std::optional<Schedule>> made_from(const Schedule& parent, const Trace& mutated, Random random);
  Result<std::optional<Schedule>> sample_point(Random random);
  Result<std::optional<Schedule>> run_function(const std::vector<schedule::Value>& decisions, size_t certain,
                                               Random random);
  /// Calls body(0) ... body(count - 1), on threads; sequentially if a Python function is run.
  Status for_each(size_t count, const std::function<Status(size_t)>& body);
  int64_t places() const;

  Options options_;
  TuneContext context_;  ///< without this strategy
  std::shared_ptr<const FunctionSpace> function_;
  std::map<std::string, double> seconds_;
  Postprocs postprocs_;
  Mutators mutators_;
  std::vector<ArgInfo> args_;
  TuningPlan plan_;
  std::vector<ThreadBounds> bounds_;  ///< by design space
  TrialCounter trials_;
  Refusals refusals_;
  uint64_t round_ = 0;
  uint64_t step_ = 0;  ///< numbers what is sampled in parallel within a round
  int64_t empty_rounds_ = 0;
  ModuleEquality equality_ = ModuleEquality::kStructural;
  std::unordered_set<Hash128> measured_;
  std::vector<std::pair<Schedule, double>> best_measured_;  ///< best candidates of this search, in order of time
  int64_t overdue_ = 0;                                     ///< runs of the function in a row
};

}  // namespace tilewright::search
