// The order of a pipeline's steps and of its groups of asynchronous copies within one time step, and how many groups
// may be pending before each step.
#pragma once

#include <optional>
#include <vector>

#include "lower/loops/pipeline_plan.h"

namespace tilewright::lower {

/// A step, or the end of a group of copies.
struct PipelineEvent {
  int64_t step;  ///< -1: T.ptx_commit_group()
  bool is_async = false;
  /// Before the step, all groups except this many must be complete; nothing: the step waits for no copy.
  std::optional<int64_t> max_pending_groups = {};
};

/// Returns the events of one time step, in order. `async`: the target has asynchronous copies.
std::vector<PipelineEvent> plan_events(const PipelinePlan& plan, bool async);

/// Whether all elements that the step writes are in buffers that each iteration owns.
bool writes_only_versioned_buffers(const PipelinePlan& plan, const PipelineStep& step);

}  // namespace tilewright::lower
