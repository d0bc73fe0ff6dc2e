// Blocks without work of their own are put into those that read them, or into the one that computes what they read.
#pragma once

#include <string>

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

struct AutoInlineOptions {
  bool into_producer = false;         ///< a block may go into the one complete block that computes what it reads
  bool into_consumer = true;          ///< a block may go into those that read it
  bool inline_const_tensor = true;    ///< one that reads nothing does, whatever else is said here
  bool disallow_if_then_else = true;  ///< the next four: not in functions that reduce something
  bool require_injective = true;
  bool require_ordered = true;
  std::vector<std::string> disallow_op;  ///< intrinsics, such as "tir.exp"
};

class AutoInline final : public ScheduleRule {
 public:
  explicit AutoInline(AutoInlineOptions options) : options_(std::move(options)) {}
  Status initialize(const TuneContext&) override { return Ok{}; }
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "AutoInline"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<AutoInline>(*this); }

 private:
  AutoInlineOptions options_;
};

}  // namespace tilewright::search
