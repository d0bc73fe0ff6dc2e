#include "search/space/space_generator_union.h"

#include "support/ranges.h"

namespace tilewright::search {

Status SpaceGeneratorUnion::initialize(const TuneContext& context) {
  TW_RETURN_IF_ERROR(SpaceGenerator::initialize(context));
  for (const auto& member : members_) TW_RETURN_IF_ERROR(member->initialize(context));
  return Ok{};
}

Result<Schedules> SpaceGeneratorUnion::generate_design_space(const Ref<Module>& module) {
  Schedules result;
  made_.clear();
  for (const auto& member : members_) {
    TW_TRY(schedules, member->generate_design_space(module));
    append_range(result, schedules);
    made_.push_back(schedules.size());
  }
  return result;
}

Reasons SpaceGeneratorUnion::refusals() const {
  Reasons all;
  for (const auto& member : members_) {
    for (const auto& [code, reason] : member->refusals()) {
      auto& [count, first] = all[code];
      if (count == 0) first = reason.second;
      count += reason.first;
    }
  }
  return all;
}

const FunctionSpace* SpaceGeneratorUnion::function_of(size_t schedule) const {
  for (size_t i : indices_of(made_)) {
    if (schedule < made_[i]) return members_[i]->function_of(schedule);
    schedule -= made_[i];
  }
  return nullptr;
}

std::shared_ptr<SpaceGenerator> SpaceGeneratorUnion::clone() const {
  auto copy = std::make_shared<SpaceGeneratorUnion>(*this);
  copy->clone_parts();
  for (auto& member : copy->members_) member = member->clone();
  return copy;
}

}  // namespace tilewright::search
