// Where the schedules of a search come from: each has some decisions taken, which strategies then vary.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "search/mutators/mutator.h"
#include "search/postprocs/postproc.h"
#include "search/rules/schedule_rule.h"
#include "search/strategy/refusals.h"

namespace tilewright::search {

using ScheduleRules = std::vector<std::shared_ptr<ScheduleRule>>;
using Postprocs = std::vector<std::shared_ptr<Postproc>>;
/// Mutators with their relative probabilities.
using Mutators = std::vector<std::pair<std::shared_ptr<Mutator>, double>>;

class FunctionSpace;

class SpaceGenerator {
 public:
  virtual ~SpaceGenerator() = default;

  // Omitted parts are filled by initialize() with the defaults of the kind of target.
  std::optional<ScheduleRules> schedule_rules;
  std::optional<Postprocs> postprocs;
  std::optional<Mutators> mutators;

  /// Fills in what is not given, and initializes the rules, postprocessors and mutators.
  virtual Status initialize(const TuneContext& context);
  /// The schedules of a program, one for each way to say it. All start from the same program.
  virtual Result<Schedules> generate_design_space(const Ref<Module>& module) = 0;
  /// Why parts of the spaces were dropped since initialize().
  virtual Reasons refusals() const { return {}; }
  /// The function that is run anew for points of one of the schedules that were generated last, by its number; null
  /// where their steps are done again with other decisions.
  virtual const FunctionSpace* function_of(size_t) const { return nullptr; }
  /// Its rules, postprocessors and mutators are clones too.
  virtual std::shared_ptr<SpaceGenerator> clone() const = 0;

 protected:
  /// Fills in what is not given with the defaults of a kind of target.
  Status fill_in(std::string_view kind);
  /// In a copy: replaces the parts that it shares by clones.
  void clone_parts();
  /// A seed for the next schedule.
  uint64_t next_seed() { return random_.next(); }

 private:
  Random random_;
};

}  // namespace tilewright::search
