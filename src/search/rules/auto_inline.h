// Blocks without work of their own are put into those that read them, or into the one that computes what they read.
#pragma once

#include <string>

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

struct AutoInlineOptions {
  bool into_producer = false;         ///< a block may go into the one complete block that computes what it reads
  bool into_consumer = true;          ///< a block may go into those that read it
  bool inline_const_tensor = true;    ///< inline blocks that read nothing, whatever the other options are
  bool disallow_if_then_else = true;  ///< the next four: not in functions that reduce something
  bool require_injective = true;
  bool require_ordered = true;
  std::vector<std::string> disallow_op;  ///< intrinsics, such as "tir.exp"
  using Members = Fields<&AutoInlineOptions::into_producer, &AutoInlineOptions::into_consumer,
                         &AutoInlineOptions::inline_const_tensor, &AutoInlineOptions::disallow_if_then_else,
                         &AutoInlineOptions::require_injective, &AutoInlineOptions::require_ordered,
                         &AutoInlineOptions::disallow_op>;
  static constexpr size_t kRequired = 6;
};

class AutoInline final : public PartOf<AutoInline, ScheduleRule, AutoInlineOptions> {
 public:
  using PartOf::PartOf;
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;
};

}  // namespace tilewright::search
