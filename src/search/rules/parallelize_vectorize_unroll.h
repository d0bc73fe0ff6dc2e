// Says, by annotations of the root block, how far the postprocessor may parallelize, vectorize and unroll.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

struct ParallelizeVectorizeUnrollOptions {
  int64_t max_jobs_per_core = 16;         ///< iterations of parallel loops, per core; -1: no parallel loops
  int64_t max_vectorize_extent = 16;      ///< -1: no vector loops
  std::vector<int64_t> unroll_max_steps;  ///< to choose from; none: nothing is unrolled
  bool unroll_explicit = true;            ///< in the program, rather than by the back end
  using Members =
      Fields<&ParallelizeVectorizeUnrollOptions::max_jobs_per_core,
             &ParallelizeVectorizeUnrollOptions::max_vectorize_extent,
             &ParallelizeVectorizeUnrollOptions::unroll_max_steps, &ParallelizeVectorizeUnrollOptions::unroll_explicit>;
};

class ParallelizeVectorizeUnroll final
    : public PartOf<ParallelizeVectorizeUnroll, ScheduleRule, ParallelizeVectorizeUnrollOptions> {
 public:
  using PartOf::PartOf;
  /// ArgumentError "parallelize_vectorize_unroll/target" for a context without a target.
  Status initialize(const TuneContext& context) override;
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 private:
  int64_t max_parallel_extent_ = -1;
};

}  // namespace tilewright::search
