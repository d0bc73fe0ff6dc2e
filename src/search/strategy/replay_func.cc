#include "search/strategy/replay_func.h"

namespace tilewright::search {
namespace {

/// Refused points in a row that leave a place in the batch empty.
constexpr int kMaxFailures = 1000;

Status no_space() {
  return argument_error("search/no-space", "ReplayFunc runs the space generator of a program, and lacks one of them",
                        "give the TuneContext a module and a space_generator");
}

}  // namespace

Status ReplayFunc::initialize(const TuneContext& context) {
  if (!context.space_generator || !context.module.defined()) return no_space();
  generator_ = context.space_generator;
  module_ = context.module;
  args_ = args_of(module_);
  seed_ = context.seed;
  return Ok{};
}

Status ReplayFunc::pre_tuning(TuningPlan plan) {
  if (!generator_) return no_space();  // without initialize()
  TW_RETURN_IF_ERROR(trials_.start(plan));
  refusals_.clear();
  return Ok{};
}

Result<std::optional<Schedule>> ReplayFunc::sample_point(Random& random) {
  for (int tries = 0; tries < kMaxFailures; ++tries) {
    auto space = generator_->generate_design_space(module_);
    if (!space.ok()) {
      refusals_.add(space.error());
      continue;
    }
    if (space->empty()) return std::optional<Schedule>();
    Schedule chosen = (*space)[random.below(space->size())];
    auto good = postprocessed(std::move(chosen), generator_->postprocs.value_or(Postprocs()), refusals_);
    if (good) return good;
  }
  return std::optional<Schedule>();
}

Result<std::optional<MeasureCandidates>> ReplayFunc::generate_measure_candidates() {
  TW_RETURN_IF_ERROR(trials_.check());
  if (trials_.is_over()) return std::optional<MeasureCandidates>();
  Random random = Random::derive(seed_, trials_.take_round(), 0);
  Schedules found;
  for (size_t i = trials_.next_batch(); i > 0; --i) {
    TW_TRY(sampled, sample_point(random));
    if (!sampled) break;
    found.push_back(std::move(*sampled));
  }
  if (found.empty()) return std::optional<MeasureCandidates>();
  trials_.count_handed_out(found.size());
  return std::optional(as_candidates(std::move(found), args_));
}

Status ReplayFunc::notify_runner_results(const MeasureCandidates&, const RunnerResults& results) {
  TW_RETURN_IF_ERROR(trials_.check());
  trials_.count_measured(results.size());
  return Ok{};
}

Status ReplayFunc::post_tuning() { return trials_.finish(); }

}  // namespace tilewright::search
