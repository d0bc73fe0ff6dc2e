// The space of a Python function that may inspect sampled values: it is run anew for each point, with given decisions.
#pragma once

#include <functional>

#include "search/space/space_generator.h"
#include "target/target.h"

namespace tilewright::search {

class FunctionSpace final : public SpaceGenerator {
 public:
  struct Point {
    Schedule schedule;                  ///< schedule up to the last step of the function
    std::optional<Diagnostic> error{};  ///< why it came no further
  };
  /// Purpose of a run of the function.
  struct Wanted {
    const std::vector<schedule::Value>& decisions;  ///< decisions of its first sampling steps; none: sampled
    bool first = false;                             ///< whether the point that is to be tried first is meant
    const std::optional<Target>& target;            ///< target that the space was initialized for
  };
  /// Schedules a fresh schedule. An error for what ends the search.
  using Function = std::function<Result<Point>(Schedule, const Wanted&)>;
  /// A run that does not return costs its deadline; so many in a row, and the others will not return either.
  static constexpr int64_t kMaxOverdue = 5;
  explicit FunctionSpace(Function function) : function_(std::move(function)) {}

  Status initialize(const TuneContext& context) override;
  Result<Point> run(const Ref<Module>& module, const std::vector<schedule::Value>& decisions, Random random,
                    bool first = false) const;
  /// Follows decisions; on failure, retries with the first `certain` ones alone: another path may reach other sampling
  /// steps, which the later decisions do not fit.
  Result<Point> follow(const Ref<Module>& module, std::vector<schedule::Value> decisions, size_t certain,
                       Random random) const;
  /// The first point alone.
  Result<Schedules> generate_design_space(const Ref<Module>& module) override;
  std::shared_ptr<SpaceGenerator> clone() const override;
  const FunctionSpace* function_of(size_t) const override { return this; }

 private:
  Function function_;
  std::optional<Target> target_;
};

}  // namespace tilewright::search
