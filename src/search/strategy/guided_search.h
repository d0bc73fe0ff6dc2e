// Draft and verify, and descent: what the default of a search is made of.
//
//   draft     many points are sampled, and varied from the best that were measured; a model that needs no measurements
//             (the prior) keeps those that it likes in a reservoir
//   re-rank   the learned model gives the best of the reservoir their order
//   verify    only then a few are measured, and some at random
//   descent   after a small exploration a share of each batch goes around the best points, see descent.h
//
// A batch depends on the seed, its number, and the results that were reported before it. It may be requested while the
// last batch is being measured, so a search that always does so never waits and is reproducible.
#pragma once

#include "search/strategy/descent.h"
#include "search/strategy/trial_counter.h"

namespace tilewright::search {

struct GuidedSearchOptions {
  int64_t drafts = 192;                ///< points sampled for a batch by replay; an eighth where a function is run
  int64_t reservoir = 512;             ///< points that wait at most
  int64_t ranked = 96;                 ///< number of candidates that the learned model ranks
  int64_t exploration = 16;            ///< trials before anything depends on results
  double descent_share = 0.5;          ///< share of a batch, afterwards
  double random_share = 0.1;           ///< share of the other candidates
  int64_t neighbors = 96;              ///< largest number of neighbors of a center
  bool ends_with_descent = false;      ///< the search is over when descent finds nothing more
  std::shared_ptr<CostModel> prior{};  ///< null: the analytical model
  using Members =
      Fields<&GuidedSearchOptions::drafts, &GuidedSearchOptions::reservoir, &GuidedSearchOptions::ranked,
             &GuidedSearchOptions::exploration, &GuidedSearchOptions::descent_share, &GuidedSearchOptions::random_share,
             &GuidedSearchOptions::neighbors, &GuidedSearchOptions::ends_with_descent, &GuidedSearchOptions::prior>;
};

class GuidedSearch final : public SearchStrategy {
 public:
  using Options = GuidedSearchOptions;
  /// ArgumentError "search/probability" for a share outside of [0, 1], "search/plan" for counts below 1.
  static Status check(const Options& options);
  explicit GuidedSearch(Options options);

  Status initialize(const TuneContext& context) override;
  Status pre_tuning(TuningPlan plan) override;
  Result<std::optional<MeasureCandidates>> generate_measure_candidates() override;
  Status notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) override;
  Status post_tuning() override;
  bool runs_ahead() const override { return true; }
  SampleCounts sample_counts() const override { return points_.counts(); }
  bool takes_parts() const override { return true; }
  std::shared_ptr<SearchStrategy> clone() const override { return std::make_shared<GuidedSearch>(options_); }

  const Refusals& refusals() const { return points_.refusals(); }

 private:
  struct Draft {
    Point point;
    double score = 0;  ///< score by the prior
  };
  struct Known {
    Point point;
    double seconds;
  };

  /// Drops the state of a search.
  void forget();
  Points::Stream stream();
  Status begin();
  Result<std::vector<Draft>> drafts_of(std::vector<Point> points);
  void add(std::vector<Draft> drafts);
  Status fill(size_t count);
  Status vary_the_best();
  Status go_around();
  Status rank(std::vector<Draft>& drafts, size_t most);
  void pick(std::vector<Draft>& from, std::vector<Point>& picked, size_t count);
  void pick_at_random(std::vector<Point>& picked, size_t count);
  void hand_out(std::vector<Point>& picked, Point point);
  Result<std::vector<double>> scores_of(CostModel& model, const std::vector<Draft*>& drafts);
  void learn(Point point, double seconds);
  bool explores() const { return handed_out_ < options_.exploration; }

  Options options_;
  TuneContext context_;  ///< without this strategy
  std::vector<ArgInfo> args_;
  TuningPlan plan_;
  TrialCounter trials_;
  Points points_;
  Descent descent_;
  std::vector<Point> first_;  ///< points that are measured before all others
  std::vector<Draft> reservoir_;
  std::optional<Hash128> center_;  ///< center whose neighbors are tried
  std::vector<Draft> around_;      ///< its neighbors, which are kept whatever the prior says
  std::vector<Known> best_;        ///< points with a time, the fastest first
  std::map<Hash128, Point> under_way_;
  int64_t handed_out_ = 0;
  uint64_t round_ = 0, step_ = 0;  ///< number of the batch; number of the samples for it
};

}  // namespace tilewright::search
