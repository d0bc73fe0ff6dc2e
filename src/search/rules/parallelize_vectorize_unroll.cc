#include "search/rules/parallelize_vectorize_unroll.h"

#include "schedule/primitives/annotate.h"
#include "schedule/primitives/sample_categorical.h"
#include "search/rules/block_conditions.h"

namespace tilewright::search {

using namespace schedule;

Status ParallelizeVectorizeUnroll::initialize(const TuneContext& context) {
  if (options_.max_jobs_per_core == -1) return Ok{};
  if (!context.target) {
    return argument_error("parallelize_vectorize_unroll/target",
                          "how many jobs are enough follows from the target, and the context has none",
                          "give the context a target");
  }
  max_parallel_extent_ = context.target->num_cores * options_.max_jobs_per_core;
  return Ok{};
}

Result<Schedules> ParallelizeVectorizeUnroll::apply(Schedule schedule, BlockRV root) const {
  TW_TRY(place, schedule.state().find(root));
  bool is_root = place.tree->realize_at(place.at) == nullptr;
  if (!is_root) return Schedules{std::move(schedule)};
  bool is_spatial = is_spatial_function(*place.tree);
  auto say = [&](const char* key, Value value) {
    return schedule.apply(Annotate{.block_or_loop = root, .ann_key = key, .ann_val = std::move(value)});
  };
  if (options_.max_jobs_per_core != -1) TW_RETURN_IF_ERROR(say("meta_schedule.parallel", {max_parallel_extent_}));
  if (options_.max_vectorize_extent != -1) {
    TW_RETURN_IF_ERROR(say("meta_schedule.vectorize", {options_.max_vectorize_extent}));
  }
  if (!options_.unroll_max_steps.empty() && !is_spatial) {
    TW_TRY(step, schedule.apply(SampleCategorical{.candidates = options_.unroll_max_steps,
                                                  .probs = equal_weights(options_.unroll_max_steps.size()),
                                                  .decision = {}}));
    const char* key = options_.unroll_explicit ? "meta_schedule.unroll_explicit" : "meta_schedule.unroll_implicit";
    TW_RETURN_IF_ERROR(say(key, {step}));
  }
  return Schedules{std::move(schedule)};
}

}  // namespace tilewright::search
