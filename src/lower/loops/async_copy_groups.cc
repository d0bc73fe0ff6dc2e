#include "lower/loops/async_copy_groups.h"

#include <algorithm>

#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Numbers the groups of copies of one time step by order. Returns the group of each step, -1 for ordinary steps.
std::vector<int64_t> groups_of(const PipelinePlan& plan, const std::vector<size_t>& order, bool async, int64_t& count) {
  std::vector<int64_t> group_of(plan.steps.size(), -1);
  std::vector<size_t> open;
  count = 0;
  for (size_t number : order) {
    const PipelineStep& step = plan.steps[number];
    const bool is_async = async && step.is_async;
    const bool waits = any_of(open, [&](size_t other) { return PipelinePlan::uses_result(step, plan.steps[other]); });
    if (!open.empty() && (!is_async || waits)) {
      ++count;
      open.clear();
    }
    if (!is_async) continue;
    group_of[number] = count;
    open.push_back(number);
  }
  if (!open.empty()) ++count;
  return group_of;
}

/// Groups that may be pending before `user`: those committed after the group of the step `copy`, whose result it uses.
/// `count`: groups per time step; `committed`: groups committed so far in this one.
int64_t groups_committed_after(const PipelinePlan& plan, size_t user, size_t copy, int64_t group, int64_t count,
                               int64_t committed) {
  const int64_t times = plan.steps[user].stage - plan.steps[copy].stage;
  return times == 0 ? committed - group - 1 : (count - 1 - group) + count * (times - 1) + committed;
}

}  // namespace

std::vector<PipelineEvent> plan_events(const PipelinePlan& plan, bool async) {
  std::vector<PipelineEvent> events;
  const std::vector<size_t> order = plan.by_order();
  int64_t count = 0, committed = 0;
  const std::vector<int64_t> group_of = groups_of(plan, order, async, count);
  auto commit = [&] {
    events.push_back({-1});
    ++committed;
  };
  for (size_t position : indices_of(order)) {
    const size_t number = order[position];
    const bool group_ends =
        position > 0 && group_of[order[position - 1]] >= 0 && group_of[number] != group_of[order[position - 1]];
    if (group_ends) commit();
    std::optional<int64_t> allowed;
    for (size_t other : indices_of(plan.steps)) {
      if (group_of[other] < 0 || other == number) continue;
      if (!PipelinePlan::uses_result(plan.steps[number], plan.steps[other])) continue;
      // Before the copy of the iteration, another one may have used the same memory, and has waited for it.
      const bool is_versioned = writes_only_versioned_buffers(plan, plan.steps[other]);
      if (is_versioned && other > number) continue;
      const int64_t pending =
          is_versioned ? groups_committed_after(plan, number, other, group_of[other], count, committed) : 0;
      allowed = std::min(allowed.value_or(pending), pending);
    }
    events.push_back({static_cast<int64_t>(number), group_of[number] >= 0, allowed});
  }
  if (!order.empty() && group_of[order.back()] >= 0) commit();
  return events;
}

bool writes_only_versioned_buffers(const PipelinePlan& plan, const PipelineStep& step) {
  return step.access.opaque.empty() && all_of(step.access.writes, [&](const Ref<BufferRegion>& region) {
           return any_of(plan.buffers,
                         [&](const PipelineBuffer& owned) { return owned.buffer->data == region->buffer->data; });
         });
}

}  // namespace tilewright::lower
