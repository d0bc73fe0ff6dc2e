#include "search/strategy/evolutionary_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/batch.h"

namespace tilewright::search {

using schedule::Random;
using schedule::Schedule;

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
  std::vector<Schedule> take() {
    std::vector<Schedule> result;
    for (auto& [schedule, score] : entries_) result.push_back(std::move(schedule));
    return result;
  }

 private:
  size_t capacity_;
  std::vector<std::pair<Schedule, double>> entries_;
};

/// A parent by score; any of them where no score tells them apart.
size_t draw_parent(const std::vector<double>& scores, Random& random) {
  double total = std::accumulate(scores.begin(), scores.end(), 0.0);
  return total > 0 ? random.categorical(scores) : static_cast<size_t>(random.below(scores.size()));
}

}  // namespace

/// A place of the next generation.
struct EvolutionarySearch::Child {
  Random random;
  int64_t failures = 0;
  size_t parent = 0;
  bool wants_parent = false;  ///< as it is
  std::optional<Schedule> found{};
};

Result<std::shared_ptr<EvolutionarySearch>> EvolutionarySearch::make(const EvolutionarySearchOptions& options) {
  for (double share : {options.init_measured_ratio, options.genetic_mutate_prob, options.eps_greedy}) {
    if (share >= 0 && share <= 1) continue;
    return argument_error("search/probability", fmt::format("{} is no share and no probability", share),
                          "init_measured_ratio, genetic_mutate_prob and eps_greedy lie between 0 and 1");
  }
  if (options.population_size < 1 || options.init_min_unmeasured < 0 || options.max_fail_count < 0 ||
      options.genetic_num_iters < 0 || options.genetic_max_fail_count < 0) {
    return argument_error("search/plan", "a generation has at least 1 place, and no count is negative");
  }
  return std::make_shared<EvolutionarySearch>(options);
}

Status EvolutionarySearch::initialize(const TuneContext& context) {
  context_ = context;
  context_.search_strategy = nullptr;
  if (context.space_generator) {
    postprocs_ = context.space_generator->postprocs.value_or(Postprocs());
    mutators_ = context.space_generator->mutators.value_or(Mutators());
  }
  if (context.module.defined()) args_ = args_of(context.module);
  return Ok{};
}

Status EvolutionarySearch::pre_tuning(TuningPlan plan) {
  TW_RETURN_IF_ERROR(progress_.start(plan));
  plan_ = std::move(plan);
  refusals_.clear();
  measured_.clear();
  empty_rounds_ = 0;
  round_ = step_ = 0;
  equality_ = plan_.database ? plan_.database->module_equality() : ModuleEquality::kStructural;
  return Ok{};
}

Random EvolutionarySearch::stream(uint64_t step, uint64_t index) const {
  return Random::derive(Random::derive(context_.seed, round_, step).next(), 0, index);
}

Result<EvolutionarySearch::Population> EvolutionarySearch::pick_best_from_database(size_t count) {
  if (!plan_.database || count == 0 || !context_.module.defined()) return Population();
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
  Population result;
  for (auto& item : replayed) {
    if (item) result.push_back(std::move(*item));
  }
  return result;
}

EvolutionarySearch::Population EvolutionarySearch::sample_init_population(size_t count) {
  Population found;
  int64_t failed_batches = 0;
  while (count > 0 && static_cast<int64_t>(found.size()) < options_.init_min_unmeasured &&
         failed_batches < options_.max_fail_count) {
    uint64_t step = step_++;
    std::vector<std::optional<Schedule>> drawn(count);
    on_threads(context_.num_threads, count, [&](size_t i) {
      Random random = stream(step, i);
      const Schedule& space = plan_.design_spaces[random.below(plan_.design_spaces.size())];
      if (auto point = redrawn(space, random.fork(), refusals_)) {
        drawn[i] = postprocessed(std::move(*point), postprocs_, refusals_);
      }
    });
    size_t before = found.size();
    for (auto& item : drawn) {
      if (item) found.push_back(std::move(*item));
    }
    failed_batches += found.size() == before;
  }
  return found;
}

Result<std::vector<double>> EvolutionarySearch::scores_of(const Population& population) {
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

void EvolutionarySearch::try_once(Child& child, const Population& population, const std::vector<double>& scores) {
  while (child.failures <= options_.genetic_max_fail_count) {
    child.parent = draw_parent(scores, child.random);
    const Mutator* mutator = draw_mutator(mutators_, options_.genetic_mutate_prob, child.random);
    if (!mutator) {
      child.wants_parent = true;
      return;
    }
    const Schedule& parent = population[child.parent];
    auto mutated = mutator->apply(parent.trace(), child.random);
    if (!mutated.ok()) {
      refusals_.add(mutated.error());
    } else if (*mutated) {
      schedule::ReplayOptions options;
      options.random = child.random.fork();
      auto again = parent.with_trace(**mutated, options);
      if (again.ok()) {
        child.found = postprocessed(std::move(*again), postprocs_, refusals_);
      } else {
        refusals_.add(again.error());
      }
    }
    if (child.found) return;
    ++child.failures;
  }
  child.found = population[child.parent];
}

EvolutionarySearch::Population EvolutionarySearch::next_generation(const Population& population,
                                                                   const std::vector<double>& scores) {
  uint64_t step = step_++;
  std::vector<Child> children;
  for (int64_t i = 0; i < options_.population_size; ++i) {
    children.push_back({stream(step, static_cast<uint64_t>(i))});
  }
  // Each parent goes on once as it is. Who gets it is settled in the order of places, not in that of threads.
  std::vector<bool> goes_on(population.size());
  std::vector<size_t> open(children.size());
  std::iota(open.begin(), open.end(), size_t{0});
  while (!open.empty()) {
    on_threads(context_.num_threads, open.size(), [&](size_t i) { try_once(children[open[i]], population, scores); });
    std::vector<size_t> again;
    for (size_t place : open) {
      Child& child = children[place];
      if (!child.wants_parent) continue;
      child.wants_parent = false;
      bool taken = goes_on[child.parent];
      if (!taken || child.failures >= options_.genetic_max_fail_count) {
        goes_on[child.parent] = true;
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
  BestOf best(count);
  std::unordered_set<Hash128> seen = measured_;
  for (int64_t generation = 0; !population.empty(); ++generation) {
    TW_TRY(scores, scores_of(population));
    std::vector<Hash128> hashes(population.size());
    on_threads(context_.num_threads, population.size(),
               [&](size_t i) { hashes[i] = module_hash(population[i].module(), equality_); });
    for (size_t i = 0; i < population.size(); ++i) {
      if (seen.insert(hashes[i]).second) best.push(population[i], scores[i]);
    }
    if (generation == options_.genetic_num_iters) break;
    population = next_generation(population, scores);
  }
  return best.take();
}

EvolutionarySearch::Population EvolutionarySearch::pick_with_eps_greedy(const Population& unmeasured,
                                                                        const Population& bests, size_t count) {
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
    if (measured_.insert(module_hash(schedule.module(), equality_)).second) picked.push_back(schedule);
  }
  return picked;
}

Result<std::optional<std::vector<MeasureCandidate>>> EvolutionarySearch::generate_measure_candidates() {
  TW_RETURN_IF_ERROR(progress_.check());
  if (progress_.is_over()) return std::optional<std::vector<MeasureCandidate>>();
  round_ = progress_.take_round();
  step_ = 0;
  size_t places = static_cast<size_t>(options_.population_size);
  TW_TRY(population,
         pick_best_from_database(static_cast<size_t>(static_cast<double>(places) * options_.init_measured_ratio)));
  Population unmeasured = sample_init_population(places - std::min(places, population.size()));
  if (static_cast<int64_t>(unmeasured.size()) < options_.init_min_unmeasured) {
    return std::optional<std::vector<MeasureCandidate>>();
  }
  population.insert(population.end(), unmeasured.begin(), unmeasured.end());
  size_t batch = progress_.next_batch();
  TW_TRY(bests, evolve_with_cost_model(std::move(population), batch));
  Population picked = pick_with_eps_greedy(unmeasured, bests, batch);
  if (picked.empty() && ++empty_rounds_ >= options_.num_empty_iters_before_end) {
    return std::optional<std::vector<MeasureCandidate>>();
  }
  return std::optional(as_candidates(std::move(picked), args_));
}

Status EvolutionarySearch::notify_runner_results(const std::vector<MeasureCandidate>&,
                                                 const std::vector<RunnerResult>& results) {
  TW_RETURN_IF_ERROR(progress_.check());
  progress_.measured(results.size());
  return Ok{};
}

Status EvolutionarySearch::post_tuning() {
  TW_RETURN_IF_ERROR(progress_.finish());
  plan_ = {};
  measured_.clear();
  return Ok{};
}

}  // namespace tilewright::search
