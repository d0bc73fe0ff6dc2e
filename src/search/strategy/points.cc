#include "search/strategy/points.h"

#include <algorithm>
#include <set>

#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/sample_compute_location.h"
#include "schedule/primitives/sample_partitioned_tile.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/tiling.h"
#include "search/batch.h"
#include "search/mutators/mutator.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using schedule::Value;

/// After this many fruitless tries in a row the space counts as exhausted: a point with probability 1/400 is missed
/// with a probability of 0.7 %.
constexpr int64_t kFruitlessTries = 2000;
/// Like kFruitlessTries, but for tries that run a function of the user, which may take long.
constexpr int64_t kFruitlessRuns = 200;

/// Returns all ways to move a prime factor from one tile to another. The innermost tile stays within its limit.
std::vector<Value> moved_factors(const std::vector<int64_t>& tiles, int64_t innermost) {
  std::set<std::vector<int64_t>> moved;
  for (size_t from = 0; from < tiles.size(); ++from) {
    for (const schedule::PrimePower& power : schedule::factorize(tiles[from])) {
      const int64_t prime = power.prime;
      for (size_t to : indices_of(tiles)) {
        if (to == from || (to + 1 == tiles.size() && innermost > 0 && tiles[to] * prime > innermost)) continue;
        std::vector<int64_t> changed = tiles;
        changed[from] /= prime;
        changed[to] *= prime;
        moved.insert(std::move(changed));
      }
    }
  }
  std::vector<Value> result;
  for (const std::vector<int64_t>& changed : moved) {
    Value::List list(changed.size());
    for (size_t i : indices_of(changed)) list[i].data = changed[i];
    result.emplace_back().data = std::move(list);
  }
  return result;
}

}  // namespace

bool Point::is_neighbor_of(const Point& other) const {
  if (space != other.space || decisions.size() != other.decisions.size()) return false;
  int differences = 0;
  for (size_t i = 0; i < decisions.size() && differences < 2; ++i) differences += decisions[i] != other.decisions[i];
  return differences == 1;
}

std::vector<Value> alternatives(const schedule::Step& sample) {
  std::vector<Value> result;
  const auto add = [&](int64_t number) { result.emplace_back().data = number; };
  if (const auto* one = sample.instruction.as<schedule::SampleCategorical>()) {
    for (size_t way : indices_of(one->probs)) {
      if (one->probs[way] > 0 && static_cast<int64_t>(way) != one->decision.value) add(static_cast<int64_t>(way));
    }
  } else if (const auto* tile = sample.instruction.as<schedule::SamplePerfectTile>()) {
    if (tile->decision.value) return moved_factors(*tile->decision.value, tile->max_innermost_factor);
  } else if (const auto* parts = sample.instruction.as<schedule::SamplePartitionedTile>()) {
    if (parts->decision.value) return moved_factors(*parts->decision.value, -1);
  } else if (const auto* place = sample.instruction.as<schedule::SampleComputeLocation>()) {
    // Places that are not possible become the next lower one: such points are seen to be known ones.
    for (int64_t near = -2; place->decision.value && near <= *place->decision.value + 2; ++near) {
      if (near != *place->decision.value) add(near);
    }
  }
  return result;
}

void Points::start(const TuneContext& context, Schedules design_spaces, ModuleEquality equality) {
  module_ = context.module;
  generator_ = context.space_generator;
  spaces_ = std::move(design_spaces);
  functions_.assign(spaces_.size(), nullptr);
  for (size_t i = 0; generator_ && i < spaces_.size(); ++i) functions_[i] = generator_->function_of(i);
  trees_ = std::vector<DecisionTree>(spaces_.size());
  postprocs_ = {};
  mutators_ = {};
  if (context.space_generator) {
    postprocs_ = context.space_generator->postprocs.value_or(Postprocs());
    mutators_ = context.space_generator->mutators.value_or(Mutators());
  }
  bounds_ = bounds_of(spaces_, postprocs_, context.target);
  num_threads_ = context.num_threads;
  equality_ = equality;
  known_.clear();
  refusals_.clear();
  tries_ = duplicates_ = fruitless_ = overdue_ = 0;
}

SampleCounts Points::counts() const { return {tries_, duplicates_, refusals_.reasons()}; }

bool Points::is_exhausted() const {
  if (overdue_ >= FunctionSpace::kMaxOverdue) return true;
  return fruitless_ >= (reruns() ? kFruitlessRuns : kFruitlessTries) ||
         all_of(trees_, [](const DecisionTree& tree) { return tree.is_exhausted(); });
}

void Points::replay(Wish& wish) {
  if (wish.trace) {
    const auto excess = bounds_[wish.space].excess(wish.trace->without_postproc().decisions());
    if (excess != ThreadBounds::Excess::kNone) return ThreadBounds::add(refusals_, excess);
    schedule::ReplayOptions options;
    options.random = wish.random;
    const Schedule& from = wish.from ? *wish.from : spaces_[wish.space];
    auto again = from.with_trace(*wish.trace, options);
    if (!again.ok()) return refusals_.add(again.error());
    wish.path = branches_of(again->trace());
    wish.made = std::move(*again);
    return;
  }
  const Schedule& space = spaces_[wish.space];
  const std::vector<size_t> samples = space.trace().sampling_steps();
  if (samples.empty()) {
    wish.made = space;
    return;
  }
  wish.refused = bounds_[wish.space].sample(wish.random, wish.decisions, refusals_);
  schedule::ReplayOptions options;
  options.fresh = true;
  options.random = wish.random.fork();
  options.decide = [&wish](size_t sample, const auto&, const schedule::Instruction& instruction) {
    Value decision = sample < wish.decisions.size() ? wish.decisions[sample] : Value{};
    std::vector<double> weights = weights_of(instruction);
    // A categorical step that is refused is not recorded, so its decision is chosen here.
    bool can_sample = any_of(weights, [](double weight) { return weight > 0; });
    if (decision.is_none() && can_sample) decision.data = static_cast<int64_t>(wish.random.categorical(weights));
    wish.path.push_back({std::move(weights), decision});
    return decision;
  };
  auto again = space.replay_from(samples[0], {}, options);
  if (!again.ok()) return refusals_.add(again.error());
  wish.path = branches_of(again->trace());
  wish.made = std::move(*again);
}

Status Points::rerun(Wish& wish) {
  TW_TRY(point, functions_[wish.space]->follow(module_, wish.trace ? wish.trace->decisions() : wish.decisions,
                                               wish.certain, wish.random));
  wish.path = branches_of(point.schedule.trace());
  if (point.error) {
    refusals_.add(*point.error);
    overdue_ = point.error->code == "space/deadline" ? overdue_ + 1 : 0;
  } else {
    overdue_ = 0;
    wish.made = std::move(point.schedule);
  }
  return Ok{};
}

void Points::keep(Wish& wish, std::vector<Point>& points) {
  tries_ += 1 + wish.refused;
  ++fruitless_;
  const bool is_new = trees_[wish.space].take(wish.path);
  if (!wish.made) return;
  Hash128 hash = module_hash(wish.made->module(), equality_);
  if (!is_new || !known_.insert(hash).second) {
    ++duplicates_;
    return;
  }
  fruitless_ = 0;
  Point point{std::move(*wish.made), hash, wish.space};
  for (const Value& decision : point.schedule.trace().without_postproc().decisions()) {
    point.decisions.push_back(text_of(decision));
  }
  points.push_back(std::move(point));
}

Result<std::vector<Point>> Points::make(std::vector<Wish> wishes) {
  for (Wish& wish : wishes) {
    if (functions_[wish.space]) TW_RETURN_IF_ERROR(rerun(wish));
  }
  on_threads(num_threads_, wishes.size(), [&](size_t i) {
    Wish& wish = wishes[i];
    if (!functions_[wish.space]) replay(wish);
    if (wish.made) wish.made = postprocessed(std::move(*wish.made), postprocs_, refusals_);
  });
  std::vector<Point> points;
  for (Wish& wish : wishes) keep(wish, points);
  return points;
}

std::vector<Point> Points::as_they_are() {
  std::vector<Point> points;
  for (size_t i : indices_of(spaces_)) {
    Wish wish{i};
    wish.path = branches_of(spaces_[i].trace());
    wish.made = postprocessed(spaces_[i], postprocs_, refusals_);
    keep(wish, points);
  }
  return points;
}

Result<std::vector<Point>> Points::sample(size_t count, const Stream& stream) {
  std::vector<Point> points;
  // Points of a group are sampled without the results of the others. Functions of the user run one at a time anyway, so
  // they get groups of one.
  const size_t group = reruns() ? 1 : count;
  for (size_t i = 0; i < count;) {
    std::vector<size_t> open;
    for (size_t space : indices_of(trees_)) {
      if (!trees_[space].is_exhausted()) open.push_back(space);
    }
    if (open.empty()) break;
    std::vector<Wish> wishes;
    for (const size_t end = std::min(i + group, count); i < end; ++i) {
      Random random = stream(i);
      Wish wish{open[random.below(open.size())]};
      wish.decisions = trees_[wish.space].choose(random);
      wish.certain = wish.decisions.size();
      wish.random = random;
      wishes.push_back(std::move(wish));
    }
    TW_TRY(made, make(std::move(wishes)));
    for (Point& point : made) points.push_back(std::move(point));
  }
  return points;
}

Result<std::vector<Point>> Points::vary(const std::vector<Variation>& variations, const Stream& stream) {
  std::vector<Wish> wishes;
  std::vector<Point> points;
  for (size_t i : indices_of(variations)) {
    const auto& [of, sample, decision] = variations[i];
    Trace trace = of->schedule.trace().without_postproc();
    const std::vector<size_t> samples = trace.sampling_steps();
    TW_CHECK(sample < samples.size(), "a variation of a sampling step that does not exist");
    Wish wish{of->space, &of->schedule};
    wish.random = stream(i);
    if (!functions_[wish.space]) {
      TW_TRY(changed, trace.with_decision(samples[sample], decision));
      wish.trace = std::move(changed);
      wishes.push_back(std::move(wish));
      continue;
    }
    // A run takes milliseconds, and most neighbors of a good point are neighbors of another one: each is made with what
    // is known of those before it.
    std::vector<Value> decisions = trace.decisions();
    decisions[sample] = decision;
    auto fitted = trees_[wish.space].fitted(std::move(decisions), wish.random);
    if (!fitted || fitted->size() <= sample) continue;
    wish.decisions = std::move(*fitted);
    wish.certain = sample + 1;
    std::vector<Wish> one;
    one.push_back(std::move(wish));
    TW_TRY(made, make(std::move(one)));
    for (Point& point : made) points.push_back(std::move(point));
  }
  TW_TRY(replayed, make(std::move(wishes)));
  points.insert(points.end(), std::make_move_iterator(replayed.begin()), std::make_move_iterator(replayed.end()));
  return points;
}

Result<std::vector<Point>> Points::mutate(const std::vector<const Point*>& parents, const Stream& stream) {
  std::vector<Wish> wishes;
  for (size_t i : indices_of(parents)) {
    Random random = stream(i);
    const Mutator* mutator = sample_mutator(mutators_, 1.0, random);
    if (!mutator) break;
    auto mutated = mutator->apply(parents[i]->schedule.trace(), random);
    if (!mutated.ok()) refusals_.add(mutated.error());
    if (!mutated.ok() || !*mutated) continue;
    Wish wish{parents[i]->space, &parents[i]->schedule};
    wish.trace = std::move(**mutated);
    wish.random = random;
    wishes.push_back(std::move(wish));
  }
  return make(std::move(wishes));
}

Result<std::vector<Point>> Points::remake(const std::vector<Trace>& traces, const Stream& stream) {
  std::vector<Point> points;
  TW_TRY(start, Schedule::make(module_));
  for (size_t i : indices_of(traces)) {
    Wish wish{0};
    wish.random = stream(i);
    Trace trace = traces[i].without_postproc();
    schedule::ReplayOptions options;
    options.random = wish.random;
    if (auto again = start.with_trace(trace, options); again.ok()) {
      wish.made = postprocessed(std::move(*again), postprocs_, refusals_);
      wish.path = {{{}, Value{}}};  // the same path in all spaces
      keep(wish, points);
      continue;
    }
    const auto function = find_if(functions_, [](auto* known) { return known; });
    if (function == functions_.end()) continue;
    wish.space = static_cast<size_t>(function - functions_.begin());
    wish.decisions = trace.decisions();
    std::vector<Wish> one;
    one.push_back(std::move(wish));
    TW_TRY(found, make(std::move(one)));
    for (Point& point : found) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace tilewright::search
