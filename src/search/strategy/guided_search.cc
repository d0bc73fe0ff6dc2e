#include "search/strategy/guided_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/cost_model/analytical.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Points that are varied, and how often, for a batch.
constexpr size_t kParents = 8;
/// Records of a database that a search starts from.
constexpr size_t kRecords = 4;
/// Running a function of Python takes about so many times as long as replaying a trace.
constexpr int64_t kRerunCost = 8;
/// Candidates of the first batch then: it is sampled while nothing is being measured, and a run may take long.
constexpr size_t kFirstRuns = 2;
constexpr double kNeverMeasured = std::numeric_limits<double>::infinity();

double seconds_of(const RunnerResult& result) {
  if (result.error_msg || result.run_secs.empty()) return kNeverMeasured;
  std::vector<double> sorted = result.run_secs;
  std::ranges::sort(sorted);
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

}  // namespace

Status GuidedSearch::check(const Options& options) {
  for (double share : {options.descent_share, options.random_share}) {
    if (share >= 0 && share <= 1) continue;
    return argument_error("search/probability", fmt::format("{} is not in [0, 1]", share),
                          "descent_share and random_share have to be between 0 and 1");
  }
  if (options.drafts < 1 || options.reservoir < 1 || options.ranked < 1 || options.neighbors < 1 ||
      options.exploration < 0) {
    return argument_error("search/plan", "at least 1 draft is sampled, kept and ranked, and no count is negative",
                          "omit them for the defaults");
  }
  return Ok{};
}

GuidedSearch::GuidedSearch(Options options) : options_(std::move(options)) {
  if (!options_.prior) options_.prior = std::make_shared<AnalyticalModel>();
}

Status GuidedSearch::initialize(const TuneContext& context) {
  if (!context.module.defined()) {
    return argument_error("search/no-module", "a guided search varies points of a program, and has none",
                          "give the TuneContext a module");
  }
  context_ = context;
  context_.search_strategy = nullptr;
  args_ = args_of(context.module);
  return Ok{};
}

void GuidedSearch::forget() {
  first_.clear();
  reservoir_.clear();
  around_.clear();
  center_.reset();
  best_.clear();
  under_way_.clear();
}

Status GuidedSearch::pre_tuning(TuningPlan plan) {
  TW_RETURN_IF_ERROR(trials_.start(plan));
  plan_ = std::move(plan);
  ModuleEquality equality = plan_.database ? plan_.database->module_equality() : ModuleEquality::kStructural;
  points_.start(context_, plan_.design_spaces, equality);
  descent_ = {};
  forget();
  handed_out_ = 0;
  return Ok{};
}

Points::Stream GuidedSearch::stream() {
  uint64_t of_step = Random::derive(context_.seed, round_, step_++).next();
  return [of_step](size_t i) { return Random::derive(of_step, 0, i); };
}

/// The design spaces as they are, and what a database knows: times of this program's points are believed, points of
/// others are tried.
Status GuidedSearch::begin() {
  first_ = points_.as_they_are();
  if (!plan_.database) return Ok{};
  TW_TRY(records, plan_.database->top_k(context_.module, kRecords));
  for (const TuningRecord& record : records) {
    TW_TRY(points, points_.remake({record.trace}, stream()));
    for (Point& point : points) {
      if (record.run_secs.empty()) {
        first_.push_back(std::move(point));
        continue;
      }
      learn(std::move(point), seconds_of({record.run_secs, {}}));
    }
  }
  return Ok{};
}

/// Only the best are kept as they are: a search has thousands of candidates, each with versions of its program.
void GuidedSearch::learn(Point point, double seconds) {
  descent_.measured(point, seconds);
  if (!std::isfinite(seconds)) return;
  auto slower = [&](const Known& known) { return known.seconds > seconds; };
  best_.insert(find_if(best_, slower), {std::move(point), seconds});
  if (best_.size() > kParents) best_.pop_back();
}

Result<std::vector<double>> GuidedSearch::scores_of(CostModel& model, const std::vector<Draft*>& drafts) {
  MeasureCandidates candidates;
  for (const Draft* draft : drafts) candidates.push_back({draft->point.schedule, args_});
  TW_TRY(scores, model.predict(context_, candidates));
  if (scores.size() != drafts.size()) {
    return argument_error("search/scores",
                          fmt::format("the cost model gave {} scores for {} candidates", scores.size(), drafts.size()),
                          "predict() returns one number for each candidate");
  }
  for (double& score : scores) score = std::isfinite(score) ? score : -kNeverMeasured;
  return scores;
}

Result<std::vector<GuidedSearch::Draft>> GuidedSearch::drafts_of(std::vector<Point> points) {
  std::vector<Draft> drafts;
  for (Point& point : points) drafts.push_back({std::move(point)});
  std::vector<Draft*> all;
  for (Draft& draft : drafts) all.push_back(&draft);
  if (drafts.empty()) return drafts;
  TW_TRY(scores, scores_of(*options_.prior, all));
  for (size_t i : indices_of(drafts)) drafts[i].score = scores[i];
  return drafts;
}

void GuidedSearch::add(std::vector<Draft> drafts) {
  size_t most = std::max<size_t>(static_cast<size_t>(options_.reservoir), drafts.size());
  for (Draft& draft : drafts) reservoir_.push_back(std::move(draft));
  auto better = [](const Draft& a, const Draft& b) { return a.score > b.score; };
  std::ranges::stable_sort(reservoir_, better);
  if (reservoir_.size() > most) reservoir_.erase(reservoir_.begin() + static_cast<ptrdiff_t>(most), reservoir_.end());
}

Status GuidedSearch::fill(size_t count) {
  int64_t drafts = options_.drafts;
  if (points_.reruns()) drafts = round_ == 0 ? static_cast<int64_t>(count) : std::max<int64_t>(1, drafts / kRerunCost);
  do {
    if (points_.is_exhausted()) return Ok{};
    TW_TRY(sampled, points_.sample(static_cast<size_t>(drafts), stream()));
    TW_TRY(drafts, drafts_of(std::move(sampled)));
    add(std::move(drafts));
    // Runs of a function may take long: what there is is measured before more is looked for.
    if (points_.reruns() && !reservoir_.empty()) return Ok{};
  } while (reservoir_.size() < count);
  return Ok{};
}

Status GuidedSearch::vary_the_best() {
  const size_t count = static_cast<size_t>(options_.drafts) / (points_.reruns() ? 4 * kRerunCost : 4);
  if (best_.empty() || count == 0) return Ok{};
  if (points_.has_mutators() && !points_.reruns()) {
    std::vector<const Point*> of;
    for (size_t i = 0; i < count; ++i) of.push_back(&best_[i % best_.size()].point);
    TW_TRY(mutated, points_.mutate(of, stream()));
    TW_TRY(drafts, drafts_of(std::move(mutated)));
    add(std::move(drafts));
    return Ok{};
  }
  std::vector<Variation> variations;
  Points::Stream random_of = stream();
  for (size_t i = 0; i < count; ++i) {
    Random random = random_of(i);
    const Point& parent = best_[i % best_.size()].point;
    std::vector<Variation> around = Descent::around(parent, static_cast<size_t>(options_.neighbors));
    if (!around.empty()) variations.push_back(around[random.below(around.size())]);
  }
  TW_TRY(varied, points_.vary(variations, stream()));
  TW_TRY(drafts, drafts_of(std::move(varied)));
  add(std::move(drafts));
  return Ok{};
}

Status GuidedSearch::go_around() {
  // A center without neighbors that are left is closed, and the next one's turn comes.
  for (const Point* center = descent_.center(); !center || center_ != center->hash; center = descent_.center()) {
    add(std::move(around_));
    around_.clear();
    center_.reset();
    if (!center) return Ok{};
    const Point next = *center;
    if (!descent_.is_expanded(next.hash)) {
      TW_TRY(made, points_.vary(Descent::around(next, static_cast<size_t>(options_.neighbors)), stream()));
      TW_TRY(drafts, drafts_of(std::move(made)));
      around_ = std::move(drafts);
    }
    // Those that were drafted before are not made again.
    auto far = [&](const Draft& draft) { return !draft.point.is_neighbor_of(next); };
    auto near = std::stable_partition(reservoir_.begin(), reservoir_.end(), far);
    around_.insert(around_.end(), std::make_move_iterator(near), std::make_move_iterator(reservoir_.end()));
    reservoir_.erase(near, reservoir_.end());
    std::vector<Hash128> neighbors;
    for (const Draft& draft : around_) neighbors.push_back(draft.point.hash);
    descent_.expanded(next.hash, neighbors);
    center_ = next.hash;
  }
  return Ok{};
}

/// The best first: the first `most`, as the prior has put them, by the learned model.
Status GuidedSearch::rank(std::vector<Draft>& drafts, size_t most) {
  std::vector<Draft*> seen;
  for (size_t i = 0; i < std::min(most, drafts.size()); ++i) seen.push_back(&drafts[i]);
  if (!plan_.cost_model || seen.empty()) return Ok{};
  TW_TRY(scores, scores_of(*plan_.cost_model, seen));
  std::vector<std::pair<double, size_t>> order;
  for (size_t i : indices_of(seen)) order.emplace_back(scores[i], i);
  std::ranges::stable_sort(order, [](auto& a, auto& b) { return a.first > b.first; });
  std::vector<Draft> ranked;
  for (auto [score, i] : order) ranked.push_back(std::move(*seen[i]));
  std::ranges::move(ranked, drafts.begin());
  return Ok{};
}

void GuidedSearch::hand_out(std::vector<Point>& picked, Point point) {
  if (plan_.refuse) {
    if (Status refused = plan_.refuse({point.schedule, args_}); !refused.ok()) {
      points_.refusals().add(refused.error());
      descent_.measured(point, kNeverMeasured);
      return;
    }
  }
  under_way_.emplace(point.hash, point);
  ++handed_out_;
  picked.push_back(std::move(point));
}

void GuidedSearch::pick(std::vector<Draft>& from, std::vector<Point>& picked, size_t count) {
  size_t taken = 0;
  while (taken < from.size() && picked.size() < count) hand_out(picked, std::move(from[taken++].point));
  from.erase(from.begin(), from.begin() + static_cast<ptrdiff_t>(taken));
}

void GuidedSearch::pick_at_random(std::vector<Point>& picked, size_t count) {
  Random random = stream()(0);
  while (!reservoir_.empty() && picked.size() < count) {
    size_t i = random.below(reservoir_.size());
    Point point = std::move(reservoir_[i].point);
    reservoir_.erase(reservoir_.begin() + static_cast<ptrdiff_t>(i));
    hand_out(picked, std::move(point));
  }
}

Result<std::optional<MeasureCandidates>> GuidedSearch::generate_measure_candidates() {
  using Answer = std::optional<MeasureCandidates>;
  TW_RETURN_IF_ERROR(trials_.check());
  if (handed_out_ >= plan_.max_trials) return Answer();
  size_t count = static_cast<size_t>(std::min<int64_t>(plan_.num_trials_per_iter, plan_.max_trials - handed_out_));
  round_ = trials_.take_round();
  if (round_ == 0 && points_.reruns()) count = std::min(count, kFirstRuns);
  step_ = 0;
  if (round_ == 0) TW_RETURN_IF_ERROR(begin());
  const bool descends = !explores() && options_.descent_share > 0;
  if (descends) {
    TW_RETURN_IF_ERROR(go_around());
    if (!center_ && options_.ends_with_descent) return Answer();
    auto better = [](const Draft& a, const Draft& b) { return a.score > b.score; };
    std::ranges::stable_sort(around_, better);
    TW_RETURN_IF_ERROR(rank(around_, around_.size()));
  }
  TW_RETURN_IF_ERROR(fill(count));
  if (!explores()) TW_RETURN_IF_ERROR(vary_the_best());
  TW_RETURN_IF_ERROR(rank(reservoir_, static_cast<size_t>(options_.ranked)));

  std::vector<Point> picked;
  while (!first_.empty() && picked.size() < count) {
    Point point = std::move(first_.front());
    first_.erase(first_.begin());
    hand_out(picked, std::move(point));
  }
  const size_t share = static_cast<size_t>(std::ceil(options_.descent_share * static_cast<double>(count)));
  if (descends) pick(around_, picked, std::min(count, picked.size() + share));
  // Places that refusals leave empty are filled with further samples.
  while (picked.size() < count) {
    size_t left = count - picked.size();
    size_t by_chance = static_cast<size_t>(std::floor(options_.random_share * static_cast<double>(left) + 0.5));
    pick(reservoir_, picked, count - by_chance);
    pick_at_random(picked, count);
    if (picked.size() == count || points_.is_exhausted()) break;
    TW_RETURN_IF_ERROR(fill(count - picked.size()));
    if (reservoir_.empty()) break;
    TW_RETURN_IF_ERROR(rank(reservoir_, static_cast<size_t>(options_.ranked)));
  }
  if (picked.empty()) return Answer();
  MeasureCandidates candidates;
  for (Point& point : picked) candidates.push_back({std::move(point.schedule), args_});
  return Answer(std::move(candidates));
}

Status GuidedSearch::notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) {
  TW_RETURN_IF_ERROR(trials_.check());
  for (size_t i = 0; i < std::min(candidates.size(), results.size()); ++i) {
    auto found = under_way_.find(module_hash(candidates[i].schedule.module(), points_.equality()));
    if (found == under_way_.end()) continue;
    learn(std::move(found->second), seconds_of(results[i]));
    under_way_.erase(found);
  }
  return Ok{};
}

Status GuidedSearch::post_tuning() {
  TW_RETURN_IF_ERROR(trials_.finish());
  plan_ = {};
  forget();
  return Ok{};
}

}  // namespace tilewright::search
