#include "search/space/function_space.h"

namespace tilewright::search {

Status FunctionSpace::initialize(const TuneContext& context) {
  target_ = context.target;
  return SpaceGenerator::initialize(context);
}

Result<FunctionSpace::Point> FunctionSpace::run(const Ref<Module>& module,
                                                const std::vector<schedule::Value>& decisions, Random random,
                                                bool first) const {
  TW_TRY(start, Schedule::make(module));
  start.seed(random);
  return function_(std::move(start), {decisions, first, target_});
}

Result<FunctionSpace::Point> FunctionSpace::follow(const Ref<Module>& module, std::vector<schedule::Value> decisions,
                                                   size_t certain, Random random) const {
  TW_TRY(point, run(module, decisions, random));
  if (!point.error || decisions.size() <= certain) return point;
  decisions.resize(certain);
  return run(module, decisions, random);
}

Result<Schedules> FunctionSpace::generate_design_space(const Ref<Module>& module) {
  TW_TRY(point, run(module, {}, Random(next_seed()), true));
  if (point.error) return std::move(*point.error);
  return Schedules{std::move(point.schedule)};
}

std::shared_ptr<SpaceGenerator> FunctionSpace::clone() const {
  auto copy = std::make_shared<FunctionSpace>(*this);
  copy->clone_parts();
  return copy;
}

}  // namespace tilewright::search
