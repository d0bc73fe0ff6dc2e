#include "search/strategy/candidates.h"

#include <numeric>

#include "ir/build.h"
#include "schedule/primitives/enter_postproc.h"
#include "search/postprocs/postprocs.h"
#include "support/ranges.h"

namespace tilewright::search {

std::optional<Schedule> postprocessed(Schedule schedule, const Postprocs& postprocs, Refusals& refusals) {
  if (auto entered = schedule.apply(schedule::EnterPostproc{}); !entered.ok()) {
    refusals.add(entered.error());
    return std::nullopt;
  }
  for (const auto& postproc : postprocs) {
    Result<bool> good = postproc->apply(schedule);
    if (good.ok() && *good) continue;
    if (good.ok()) {
      refusals.add(postproc->name());
    } else {
      refusals.add(good.error());
    }
    return std::nullopt;
  }
  return schedule;
}

std::vector<ThreadBounds> bounds_of(const Schedules& spaces, const Postprocs& postprocs,
                                    const std::optional<Target>& target) {
  std::vector<ThreadBounds> bounds(spaces.size());
  const bool is_verified =
      any_of(postprocs, [](const auto& each) { return dynamic_cast<const VerifyGPUCode*>(each.get()) != nullptr; });
  for (size_t i = 0; is_verified && target && i < spaces.size(); ++i) bounds[i] = ThreadBounds(spaces[i], *target);
  return bounds;
}

std::optional<Schedule> resampled(const Schedule& schedule, const ThreadBounds& bounds, Random random,
                                  Refusals& refusals) {
  std::vector<size_t> samples = schedule.trace().sampling_steps();
  if (samples.empty()) return schedule;
  std::vector<schedule::Value> decisions;
  bounds.sample(random, decisions, refusals);
  schedule::ReplayOptions options;
  options.fresh = true;
  options.random = random;
  if (!decisions.empty()) {
    options.decide = [&](size_t sample, const auto&, const auto&) {
      return sample < decisions.size() ? decisions[sample] : schedule::Value{};
    };
  }
  Result<Schedule> result = schedule.replay_from(samples[0], {}, options);
  if (result.ok()) return std::move(*result);
  refusals.add(result.error());
  return std::nullopt;
}

const Mutator* sample_mutator(const Mutators& mutators, double mutate_prob, Random& random) {
  std::vector<double> weights;
  for (const auto& [mutator, probability] : mutators) weights.push_back(probability);
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (random.uniform() >= mutate_prob || total <= 0) return nullptr;
  return mutators[random.categorical(weights)].first.get();
}

std::vector<ArgInfo> args_of(const Ref<Module>& module) {
  const PrimFunc* entry = nullptr;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* prim = func.as<PrimFunc>();
    if (prim && (name == "main" || module->functions.size() == 1 || prim->attrs.has("tir.is_entry_func"))) entry = prim;
  }
  std::vector<ArgInfo> args;
  if (!entry) return args;
  for (const Ref<Var>& param : entry->params) {
    Ref<Buffer> buffer = entry->buffer_of(param);
    if (!buffer.defined()) return {};
    ArgInfo info{buffer->dtype, {}};
    for (const Expr& extent : buffer->shape) {
      auto size = const_int(extent);
      if (!size) return {};
      info.shape.push_back(*size);
    }
    args.push_back(std::move(info));
  }
  return args;
}

MeasureCandidates as_candidates(Schedules schedules, const std::vector<ArgInfo>& args) {
  MeasureCandidates result;
  for (Schedule& schedule : schedules) result.push_back({std::move(schedule), args});
  return result;
}

}  // namespace tilewright::search
