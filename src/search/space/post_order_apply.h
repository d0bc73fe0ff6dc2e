// The space that rules make, one after the other, of the blocks of a program.
//
//   A, B, C, root    the blocks, each behind those inside of it
//   for each rule: to each schedule so far, to root, then C, B, A: what the rule makes of it. Where that is several
//   schedules, the remaining blocks are gone through in each of them.
//
// Blocks that no longer exist, such as inlined ones, are skipped; blocks with an annotation "schedule_rule" are left to
// ApplyCustomRule. A block that a rule fails on stays as it was before that rule. Such failures are counted, with one
// warning for each rule and reason. A rule that fails for every block is broken, and its error is that of the space.
#pragma once

#include <functional>

#include "search/space/space_generator.h"
#include "search/warnings.h"

namespace tilewright::search {

class PostOrderApply final : public SpaceGenerator {
 public:
  using BlockFilter = std::function<Result<bool>(const Ref<Block>&)>;
  /// Rules see the blocks that the filter accepts; all where there is none.
  explicit PostOrderApply(BlockFilter filter = {}) : filter_(std::move(filter)) {}

  Status initialize(const TuneContext& context) override;
  /// ScheduleError "post_order_apply/P1" where two blocks of a function have one name.
  Result<Schedules> generate_design_space(const Ref<Module>& module) override;
  Reasons refusals() const override { return refused_; }
  std::shared_ptr<SpaceGenerator> clone() const override;

 private:
  struct Failure {
    std::string block;
    Diagnostic error;
  };
  Result<Schedules> apply_everywhere(const ScheduleRule& rule, Schedules schedules, const std::vector<BlockRV>& blocks);
  void note(const ScheduleRule& rule, const std::vector<Failure>& failures);
  Result<std::vector<BlockRV>> collect_blocks(Schedule& schedule, const Ref<Module>& module) const;

  BlockFilter filter_;
  Reasons refused_;
  Warnings warnings_;
};

}  // namespace tilewright::search
