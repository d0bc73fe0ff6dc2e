#include "search/strategy/replay_trace.h"

#include "search/batch.h"

namespace tilewright::search {

Status ReplayTrace::initialize(const TuneContext& context) {
  if (context.space_generator) postprocs_ = context.space_generator->postprocs.value_or(Postprocs());
  if (context.module.defined()) args_ = args_of(context.module);
  target_ = context.target;
  seed_ = context.seed;
  num_threads_ = context.num_threads;
  return Ok{};
}

Status ReplayTrace::pre_tuning(TuningPlan plan) {
  TW_RETURN_IF_ERROR(trials_.start(plan));
  spaces_ = std::move(plan.design_spaces);
  bounds_ = bounds_of(spaces_, postprocs_, target_);
  refusals_.clear();
  return Ok{};
}

Result<std::optional<MeasureCandidates>> ReplayTrace::generate_measure_candidates() {
  TW_RETURN_IF_ERROR(trials_.check());
  if (trials_.is_over()) return std::optional<MeasureCandidates>();
  uint64_t round = trials_.take_round();
  std::vector<std::optional<Schedule>> sampled(trials_.next_batch());
  on_threads(num_threads_, sampled.size(), [&](size_t i) {
    Random random = Random::derive(seed_, round, i);
    for (int64_t tries = 0; tries < max_fail_count_ && !sampled[i]; ++tries) {
      const size_t space = random.below(spaces_.size());
      if (auto point = resampled(spaces_[space], bounds_[space], random.fork(), refusals_)) {
        sampled[i] = postprocessed(std::move(*point), postprocs_, refusals_);
      }
    }
  });
  Schedules found;
  for (auto& item : sampled) {
    if (item) found.push_back(std::move(*item));
  }
  if (found.empty()) return std::optional<MeasureCandidates>();
  trials_.count_handed_out(found.size());
  return std::optional(as_candidates(std::move(found), args_));
}

Status ReplayTrace::notify_runner_results(const MeasureCandidates&, const RunnerResults& results) {
  TW_RETURN_IF_ERROR(trials_.check());
  trials_.count_measured(results.size());
  return Ok{};
}

Status ReplayTrace::post_tuning() {
  TW_RETURN_IF_ERROR(trials_.finish());
  spaces_.clear();
  bounds_.clear();
  return Ok{};
}

}  // namespace tilewright::search
