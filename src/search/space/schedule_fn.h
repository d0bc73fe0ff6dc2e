// The space that a function makes of a schedule.
#pragma once

#include <functional>

#include "search/space/space_generator.h"

namespace tilewright::search {

class ScheduleFn final : public SpaceGenerator {
 public:
  using Function = std::function<Result<Schedules>(Schedule)>;
  explicit ScheduleFn(Function function) : function_(std::move(function)) {}

  Result<Schedules> generate_design_space(const Ref<Module>& module) override;
  std::shared_ptr<SpaceGenerator> clone() const override;

 private:
  Function function_;
};

}  // namespace tilewright::search
