#include "search/strategy/evolutionary_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/batch.h"
#include "search/scoped_timer.h"
#include "search/strategy/points.h"
#include "support/ranges.h"

namespace tilewright::search {

namespace {

/// The best that were pushed, at most `capacity`; of equal ones those that came first.
class BestOf {
 public:
  explicit BestOf(size_t capacity) : capacity_(capacity) {}
  void push(const Schedule& schedule, double score) {
    size_t place = entries_.size();
    while (place > 0 && entries_[place - 1].second < score) --place;
    if (place == capacity_) return;
    entries_.emplace(entries_.begin() + static_cast<ptrdiff_t>(place), schedule, score);
    if (entries_.size() > capacity_) entries_.pop_back();
  }
  /// The best first.
  Schedules take() {
    Schedules result;
    for (auto& [schedule, score] : entries_) result.push_back(std::move(schedule));
    return result;
  }

 private:
  size_t capacity_;
  std::vector<std::pair<Schedule, double>> entries_;
};

/// Samples a parent by score; uniformly if all scores are 0.
size_t sample_parent(const std::vector<double>& scores, Random& random) {
  double total = std::accumulate(scores.begin(), scores.end(), 0.0);
  return total > 0 ? random.categorical(scores) : static_cast<size_t>(random.below(scores.size()));
}

double mean(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
         static_cast<double>(std::max<size_t>(1, seconds.size()));
}

/// Population size in a FunctionSpace, where each candidate runs Python code, which takes milliseconds.
constexpr int64_t kPopulationOfFunction = 64;

/// Changes the decision of one sampling step; none where no step has an alternative.
std::optional<Trace> with_another_decision(const Trace& trace, Random& random) {
  const Trace steps = trace.without_postproc();
  std::vector<std::pair<size_t, std::vector<schedule::Value>>> open;
  for (size_t sample : steps.sampling_steps()) {
    auto others = alternatives(steps[sample]);
    if (!others.empty()) open.emplace_back(sample, std::move(others));
  }
  if (open.empty()) return std::nullopt;
  const auto& [sample, others] = open[random.below(open.size())];
  auto changed = steps.with_decision(sample, others[random.below(others.size())]);
  if (!changed.ok()) return std::nullopt;
  return std::move(*changed);
}

}  // namespace

/// A member of the next generation.
struct EvolutionarySearch::Child {
  Random random;
  int64_t failures = 0;
  size_t parent = 0;
  bool wants_parent = false;  ///< whether to keep the parent unchanged
  std::optional<Schedule> found{};
};

Status EvolutionarySearch::check(const Options& options) {
  for (double share : {options.init_measured_ratio, options.genetic_mutate_prob, options.eps_greedy}) {
    if (share >= 0 && share <= 1) continue;
    return argument_error("search/probability", fmt::format("{} is not in [0, 1]", share),
                          "init_measured_ratio, genetic_mutate_prob and eps_greedy have to be between 0 and 1");
  }
  if (options.population_size < 1 || options.init_min_unmeasured < 0 || options.max_fail_count < 0 ||
      options.genetic_num_iters < 0 || options.genetic_max_fail_count < 0) {
    return argument_error("search/plan", "population_size is below 1, or a count is negative",
                          "omit them for the published values");
  }
  return Ok{};
}

Status EvolutionarySearch::initialize(const TuneContext& context) {
  context_ = context;
  context_.search_strategy = nullptr;
  if (context.space_generator) {
    postprocs_ = context.space_generator->postprocs.value_or(Postprocs());
    mutators_ = context.space_generator->mutators.value_or(Mutators());
  }
  function_ = std::dynamic_pointer_cast<const FunctionSpace>(context.space_generator);
  if (context.module.defined()) args_ = args_of(context.module);
  return Ok{};
}

Status EvolutionarySearch::pre_tuning(TuningPlan plan) {
  TW_RETURN_IF_ERROR(trials_.start(plan));
  plan_ = std::move(plan);
  bounds_ = bounds_of(plan_.design_spaces, postprocs_, context_.target);
  refusals_.clear();
  measured_.clear();
  best_measured_.clear();
  empty_rounds_ = overdue_ = 0;
  round_ = step_ = 0;
  equality_ = plan_.database ? plan_.database->module_equality() : ModuleEquality::kStructural;
  return Ok{};
}

Random EvolutionarySearch::stream(uint64_t step, uint64_t index) const {
  return Random::derive(Random::derive(context_.seed, round_, step).next(), 0, index);
}

int64_t EvolutionarySearch::places() const {
  return function_ ? std::min(options_.population_size, std::max(options_.init_min_unmeasured, kPopulationOfFunction))
                   : options_.population_size;
}

Status EvolutionarySearch::for_each(size_t count, const std::function<Status(size_t)>& body) {
  if (function_) {
    for (size_t i = 0; i < count; ++i) TW_RETURN_IF_ERROR(body(i));
    return Ok{};
  }
  std::vector<Status> ends(count, Ok{});
  on_threads(context_.num_threads, count, [&](size_t i) { ends[i] = body(i); });
  for (Status& end : ends) TW_RETURN_IF_ERROR(std::move(end));
  return Ok{};
}

Result<std::optional<Schedule>> EvolutionarySearch::run_function(const std::vector<schedule::Value>& decisions,
                                                                 size_t certain, Random random) {
  if (overdue_ >= FunctionSpace::kMaxOverdue) return std::optional<Schedule>();
  TW_TRY(point, function_->follow(context_.module, decisions, certain, random));
  if (!point.error) {
    overdue_ = 0;
    return postprocessed(std::move(point.schedule), postprocs_, refusals_);
  }
  refusals_.add(*point.error);
  overdue_ = point.error->code == "space/deadline" ? overdue_ + 1 : 0;
  return std::optional<Schedule>();
}

Result<EvolutionarySearch::Population> EvolutionarySearch::pick_best_from_database(size_t count) {
  if (!plan_.database || count == 0 || !context_.module.defined()) return Population();
  const ScopedTimer timer(seconds_, "EvoSearch/PickBestFromDatabase");
  TW_TRY(records, plan_.database->top_k(context_.module, count));
  TW_TRY(start, Schedule::make(context_.module));
  uint64_t step = step_++;
  std::vector<std::optional<Schedule>> replayed(records.size());
  on_threads(context_.num_threads, records.size(), [&](size_t i) {
    schedule::ReplayOptions options;
    options.random = stream(step, i);
    auto again = start.with_trace(records[i].trace.without_postproc(), options);
    if (again.ok()) {
      replayed[i] = postprocessed(std::move(*again), postprocs_, refusals_);
    } else {
      refusals_.add(again.error());
    }
  });
  // The database may contain measurements of this search, too.
  std::vector<std::pair<Schedule, double>> known = best_measured_;
  for (size_t i : indices_of(records)) {
    if (replayed[i]) known.emplace_back(std::move(*replayed[i]), mean(records[i].run_secs));
  }
  std::ranges::stable_sort(known, [](const auto& a, const auto& b) { return a.second < b.second; });
  Population result;
  std::unordered_set<Hash128> seen;
  for (auto& [schedule, seconds] : known) {
    if (result.size() < count && seen.insert(module_hash(schedule.module(), equality_)).second) {
      result.push_back(std::move(schedule));
    }
  }
  return result;
}

Result<std::optional<Schedule>> EvolutionarySearch::sample_point(Random random) {
  if (function_) return run_function({}, 0, random.fork());
  const size_t space = random.below(plan_.design_spaces.size());
  auto point = resampled(plan_.design_spaces[space], bounds_[space], random.fork(), refusals_);
  if (!point) return std::optional<Schedule>();
  return postprocessed(std::move(*point), postprocs_, refusals_);
}

Result<EvolutionarySearch::Population> EvolutionarySearch::sample_init_population(size_t count) {
  TW_RETURN_IF_ERROR(trials_.check());
  const ScopedTimer timer(seconds_, "EvoSearch/SampleInitPopulation");
  Population population;
  int64_t failed_batches = 0;
  while (count > 0 && static_cast<int64_t>(population.size()) < options_.init_min_unmeasured &&
         failed_batches < options_.max_fail_count) {
    uint64_t step = step_++;
    std::vector<std::optional<Schedule>> points(count);
    TW_RETURN_IF_ERROR(for_each(count, [&](size_t i) -> Status {
      TW_TRY(point, sample_point(stream(step, i)));
      points[i] = std::move(point);
      return Ok{};
    }));
    size_t before = population.size();
    for (auto& item : points) {
      if (item) population.push_back(std::move(*item));
    }
    failed_batches += population.size() == before;
  }
  return population;
}

Result<std::vector<double>> EvolutionarySearch::scores_of(const Population& population) {
  const ScopedTimer timer(seconds_, "EvoSearch/Evolve/PredictNormalizedScore");
  std::vector<double> scores;
  if (plan_.cost_model) {
    TW_TRY(predicted, plan_.cost_model->predict(context_, as_candidates(population, args_)));
    scores = std::move(predicted);
  } else {
    Random random = stream(step_++, 0);
    for (size_t i = 0; i < population.size(); ++i) scores.push_back(random.uniform());
  }
  if (scores.size() != population.size()) {
    return argument_error(
        "search/scores",
        fmt::format("the cost model gave {} scores for {} candidates", scores.size(), population.size()),
        "predict() returns one number for each candidate");
  }
  for (double& score : scores) score = std::isfinite(score) ? std::max(score, 0.0) : 0.0;
  return scores;
}

Result<std::optional<Schedule>> EvolutionarySearch::made_from(const Schedule& parent, const Trace& mutated,
                                                              Random random) {
  if (function_) {
    const auto before = parent.trace().without_postproc().decisions();
    const auto after = mutated.without_postproc().decisions();
    const auto differs = std::ranges::mismatch(before, after);
    return run_function(after, static_cast<size_t>(differs.in2 - after.begin()) + 1, random);
  }
  schedule::ReplayOptions options;
  options.random = random;
  auto again = parent.with_trace(mutated, options);
  if (again.ok()) return postprocessed(std::move(*again), postprocs_, refusals_);
  refusals_.add(again.error());
  return std::optional<Schedule>();
}

Status EvolutionarySearch::try_once(Child& child, const Population& population, const std::vector<double>& scores) {
  while (child.failures <= options_.genetic_max_fail_count) {
    child.parent = sample_parent(scores, child.random);
    const Mutator* mutator = sample_mutator(mutators_, options_.genetic_mutate_prob, child.random);
    if (!mutator) {
      child.wants_parent = true;
      return Ok{};
    }
    const Schedule& parent = population[child.parent];
    auto mutated = mutator->apply(parent.trace(), child.random);
    if (!mutated.ok()) {
      refusals_.add(mutated.error());
    } else {
      if (!*mutated && function_) *mutated = with_another_decision(parent.trace(), child.random);
      if (*mutated) {
        TW_TRY(made, made_from(parent, **mutated, child.random.fork()));
        child.found = std::move(made);
      }
    }
    if (child.found) return Ok{};
    ++child.failures;
  }
  child.found = population[child.parent];
  return Ok{};
}

Result<EvolutionarySearch::Population> EvolutionarySearch::next_generation(const Population& population,
                                                                           const std::vector<double>& scores) {
  const ScopedTimer timer(seconds_, "EvoSearch/Evolve/Mutation");
  uint64_t step = step_++;
  std::vector<Child> children;
  for (int64_t i = 0; i < places(); ++i) {
    children.push_back({stream(step, static_cast<uint64_t>(i))});
  }
  // Each parent survives once, unchanged. Its place is chosen in the order of places, not in that of threads.
  std::vector<bool> is_parent_kept(population.size());
  std::vector<size_t> open(children.size());
  std::iota(open.begin(), open.end(), size_t{0});
  while (!open.empty()) {
    TW_RETURN_IF_ERROR(
        for_each(open.size(), [&](size_t i) { return try_once(children[open[i]], population, scores); }));
    std::vector<size_t> again;
    for (size_t place : open) {
      Child& child = children[place];
      if (!child.wants_parent) continue;
      child.wants_parent = false;
      bool taken = is_parent_kept[child.parent];
      if (!taken || child.failures >= options_.genetic_max_fail_count) {
        is_parent_kept[child.parent] = true;
        child.found = population[child.parent];
      } else {
        ++child.failures;
        again.push_back(place);
      }
    }
    open = std::move(again);
  }
  Population next;
  for (Child& child : children) next.push_back(std::move(*child.found));
  return next;
}

Result<EvolutionarySearch::Population> EvolutionarySearch::evolve_with_cost_model(Population population, size_t count) {
  const ScopedTimer timer(seconds_, "EvoSearch/Evolve/Misc");
  BestOf best(count);
  std::optional<ScopedTimer> copying(std::in_place, seconds_, "EvoSearch/Evolve/Misc/CopyMeasuredWorkloads");
  std::unordered_set<Hash128> seen = measured_;
  copying.reset();
  for (int64_t generation = 0; !population.empty(); ++generation) {
    TW_TRY(scores, scores_of(population));
    std::vector<Hash128> hashes(population.size());
    on_threads(context_.num_threads, population.size(),
               [&](size_t i) { hashes[i] = module_hash(population[i].module(), equality_); });
    for (size_t i : indices_of(population)) {
      if (seen.insert(hashes[i]).second) best.push(population[i], scores[i]);
    }
    if (generation == options_.genetic_num_iters) break;
    TW_TRY(next, next_generation(population, scores));
    population = std::move(next);
  }
  return best.take();
}

EvolutionarySearch::Population EvolutionarySearch::pick_with_eps_greedy(const Population& unmeasured,
                                                                        const Population& bests, size_t count) {
  const ScopedTimer timer(seconds_, "EvoSearch/PickWithEpsGreedy");
  std::vector<size_t> order(unmeasured.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Random random = stream(step_++, 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  size_t num_random = static_cast<size_t>(static_cast<double>(count) * options_.eps_greedy);
  size_t next_best = 0, next_random = 0;
  Population picked;
  while (picked.size() < count && (next_best < bests.size() || next_random < order.size())) {
    bool prefers_best = picked.size() < count - num_random;
    bool takes_best = next_best < bests.size() && (prefers_best || next_random == order.size());
    const Schedule& schedule = takes_best ? bests[next_best++] : unmeasured[order[next_random++]];
    if (!measured_.insert(module_hash(schedule.module(), equality_)).second) continue;
    if (plan_.refuse) {
      if (Status worth = plan_.refuse({schedule, args_}); !worth.ok()) {
        refusals_.add(worth.error());
        continue;
      }
    }
    picked.push_back(schedule);
  }
  return picked;
}

Result<std::optional<MeasureCandidates>> EvolutionarySearch::generate_measure_candidates() {
  TW_RETURN_IF_ERROR(trials_.check());
  if (trials_.is_over()) return std::optional<MeasureCandidates>();
  round_ = trials_.take_round();
  step_ = 0;
  const ScopedTimer timer(seconds_, "EvoSearch");
  const size_t all = static_cast<size_t>(places());
  TW_TRY(population,
         pick_best_from_database(static_cast<size_t>(static_cast<double>(all) * options_.init_measured_ratio)));
  TW_TRY(unmeasured, sample_init_population(all - std::min(all, population.size())));
  if (static_cast<int64_t>(unmeasured.size()) < options_.init_min_unmeasured) {
    return std::optional<MeasureCandidates>();
  }
  append_range(population, unmeasured);
  size_t batch = trials_.next_batch();
  TW_TRY(bests, evolve_with_cost_model(std::move(population), batch));
  Population picked = pick_with_eps_greedy(unmeasured, bests, batch);
  if (picked.empty() && ++empty_rounds_ >= options_.num_empty_iters_before_end) {
    return std::optional<MeasureCandidates>();
  }
  trials_.count_handed_out(picked.size());
  return std::optional(as_candidates(std::move(picked), args_));
}

Status EvolutionarySearch::notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) {
  TW_RETURN_IF_ERROR(trials_.check());
  for (size_t i = 0; i < std::min(candidates.size(), results.size()); ++i) {
    if (results[i].run_secs.empty() || results[i].error_msg) continue;
    best_measured_.emplace_back(candidates[i].schedule, mean(results[i].run_secs));
  }
  std::ranges::stable_sort(best_measured_, [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto most = static_cast<size_t>(static_cast<double>(places()) * options_.init_measured_ratio);
  if (best_measured_.size() > most) best_measured_.resize(most, best_measured_.front());
  trials_.count_measured(results.size());
  return Ok{};
}

Status EvolutionarySearch::post_tuning() {
  TW_RETURN_IF_ERROR(trials_.finish());
  plan_ = {};
  measured_.clear();
  best_measured_.clear();
  return Ok{};
}

}  // namespace tilewright::search
