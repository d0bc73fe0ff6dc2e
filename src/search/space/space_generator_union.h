// Several spaces of one program, as one.
#pragma once

#include "search/space/space_generator.h"

namespace tilewright::search {

class SpaceGeneratorUnion final : public SpaceGenerator {
 public:
  explicit SpaceGeneratorUnion(std::vector<std::shared_ptr<SpaceGenerator>> members) : members_(std::move(members)) {}

  /// Initializes the members, too.
  Status initialize(const TuneContext& context) override;
  Result<Schedules> generate_design_space(const Ref<Module>& module) override;
  /// The refusals of all members.
  Reasons refusals() const override;
  std::shared_ptr<SpaceGenerator> clone() const override;
  const FunctionSpace* function_of(size_t schedule) const override;

 private:
  std::vector<std::shared_ptr<SpaceGenerator>> members_;
  std::vector<size_t> made_;  ///< by each of them, last
};

}  // namespace tilewright::search
