// The space that rules make, one after the other, of the blocks of a program.
//
//   A, B, C, root    the blocks, each behind those inside of it
//   for each rule: to each schedule so far, to root, then C, B, A: what the rule makes of it. Where that is several
//   schedules, the remaining blocks are gone through in each of them.
//
// Blocks that are gone by then, such as inlined ones, are left out; blocks with an annotation "schedule_rule" are left
// to ApplyCustomRule.
#pragma once

#include <functional>

#include "search/space/space_generator.h"

namespace tilewright::search {

class PostOrderApply final : public SpaceGenerator {
 public:
  using BlockFilter = std::function<Result<bool>(const Ref<Block>&)>;
  /// Rules see the blocks that the filter accepts; all where there is none.
  explicit PostOrderApply(BlockFilter filter = {}) : filter_(std::move(filter)) {}

  /// ScheduleError "post_order_apply/P1" where two blocks of a function have one name.
  Result<std::vector<schedule::Schedule>> generate_design_space(const Ref<Module>& module) override;
  std::shared_ptr<SpaceGenerator> clone() const override;

 private:
  Result<std::vector<schedule::BlockRV>> collect_blocks(schedule::Schedule& schedule, const Ref<Module>& module) const;

  BlockFilter filter_;
};

}  // namespace tilewright::search
