#include "search/rules/apply_custom_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "schedule/primitives/unannotate.h"
#include "search/rules/winograd.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

struct Table {
  Table() {
    for (auto& [name, rule] : winograd_rules()) rules.emplace(name, std::move(rule));
  }
  std::mutex mutex;
  std::map<std::string, CustomRule> rules;
};

/// Never destroyed: rules of Python must not outlive the interpreter.
Table& table() {
  static Table* the_table = new Table;
  return *the_table;
}

}  // namespace

Status register_custom_rule(const std::string& name, CustomRule rule, bool replace) {
  const size_t key = std::string("meta_schedule.").size(), dot = name.find('.', std::min(name.size(), key));
  if (!name.starts_with("meta_schedule.") || dot == std::string::npos || dot == key || dot + 1 == name.size()) {
    return argument_error(
        "custom_rule/name", "no block would find a rule of the name '" + name + "'",
        "it is meta_schedule.KEY.NAME: KEY is one of the target's (cpu, gpu, cuda, ...), NAME what the "
        "block's annotation 'schedule_rule' says");
  }
  std::lock_guard lock(table().mutex);
  if (!replace && table().rules.contains(name)) {
    return argument_error("custom_rule/taken", "there is a rule '" + name + "' already",
                          "take another name, or replace it on purpose");
  }
  table().rules.insert_or_assign(name, std::move(rule));
  return Ok{};
}

CustomRule find_custom_rule(const std::string& name) {
  std::lock_guard lock(table().mutex);
  return find_value_or(table().rules, name, CustomRule{});
}

Status ApplyCustomRule::initialize(const TuneContext& context) {
  if (!context.target) {
    return argument_error("custom_rule/target", "rules of blocks are found by the target, and the context has none",
                          "give the context a target");
  }
  keys_ = context.target->keys();
  warnings_.clear();
  return Ok{};
}

Result<Schedules> ApplyCustomRule::apply(Schedule schedule, BlockRV block) const {
  TW_TRY(place, schedule.state().find(block));
  NodeRef named = place.block().annotations.get("schedule_rule");
  const StringImm* name = named.as<StringImm>();
  if (!name || name->value == "None") return Schedules{std::move(schedule)};
  for (const std::string& key : keys_) {
    if (CustomRule rule = find_custom_rule("meta_schedule." + key + "." + name->value)) {
      return rule(std::move(schedule), block);
    }
  }
  warnings_.once(name->value, fmt::format("block '{}' asks for the rule '{}', of which there is none for targets with "
                                          "the keys {}: the other rules have it; ms.register_custom_rule() adds one",
                                          place.block().name_hint, name->value, fmt::join(keys_, ", ")));
  TW_TRY(done, schedule.apply(Unannotate{.block_or_loop = block, .ann_key = "schedule_rule"}));
  (void)done;
  return Schedules{std::move(schedule)};
}

}  // namespace tilewright::search
