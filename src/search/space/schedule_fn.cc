#include "search/space/schedule_fn.h"

namespace tilewright::search {

Result<Schedules> ScheduleFn::generate_design_space(const Ref<Module>& module) {
  TW_TRY(start, schedule::Schedule::make(module, next_seed()));
  return function_(std::move(start));
}

std::shared_ptr<SpaceGenerator> ScheduleFn::clone() const {
  auto copy = std::make_shared<ScheduleFn>(*this);
  copy->clone_parts();
  return copy;
}

}  // namespace tilewright::search
