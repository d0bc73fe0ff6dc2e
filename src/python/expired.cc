#include "python/expired.h"

#include "schedule/instruction.h"

namespace tilewright::python {

using namespace schedule;

namespace {

bool is_there(const State& state, uint32_t handle) {
  return handle < state.num_handles() && state.find(state.handle(handle)).ok();
}

/// The step after which the handle's loop or block was there no more; the trace's size if it was never there.
size_t remover(const Schedule& schedule, uint32_t handle) {
  const size_t size = schedule.trace().size();
  for (size_t steps = size; steps-- > 0;) {
    if (is_there(schedule.rewound(steps).state(), handle)) return steps;
  }
  return size;
}

void collect(const Value& value, std::vector<uint32_t>& handles) {
  if (const auto* loop = value.as<LoopRV>()) handles.push_back(loop->index);
  if (const auto* block = value.as<BlockRV>()) handles.push_back(block->index);
  if (const auto* list = value.as<Value::List>()) {
    for (const Value& item : *list) collect(item, handles);
  }
}

}  // namespace

std::vector<uint32_t> handles_in(const std::vector<std::optional<Value>>& arguments) {
  std::vector<uint32_t> handles;
  for (const auto& argument : arguments) {
    if (argument) collect(*argument, handles);
  }
  return handles;
}

Diagnostic with_remover(const PySchedule& self, const std::vector<uint32_t>& handles, Diagnostic error) {
  if (error.code != "schedule/expired" || self.detail == ErrorDetail::kNone) return error;
  for (uint32_t handle : handles) {
    if (handle == LoopRV::kNone || is_there(self.schedule.state(), handle)) continue;
    const size_t step = remover(self.schedule, handle);
    if (step == self.schedule.trace().size()) continue;
    const KindInfo& info = kind_info(self.schedule.trace()[step].instruction);
    error.message +=
        ": " + std::string(info.method) + "(), step " + std::to_string(step) + " of the trace, took it out";
    error.hint = info.returns == Shape::kNothing ? "get_loops() and get_block() give the handles of what is there now"
                                                 : "use the handles which that step gave, or get_loops() again";
    return error;
  }
  return error;
}

}  // namespace tilewright::python
