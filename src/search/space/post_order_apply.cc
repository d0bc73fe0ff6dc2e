#include "search/space/post_order_apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "schedule/primitives/get_block.h"
#include "search/rules/apply_custom_rule.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// Each behind those inside of it.
std::vector<int> post_order(const Tree& tree) {
  std::vector<int> result = tree.blocks();
  std::ranges::stable_sort(
      result, [&](int a, int b) { return tree[a].end != tree[b].end ? tree[a].end < tree[b].end : a > b; });
  return result;
}

/// Whether the handles that the schedule had when a rule was given it are those of what the rule made of it.
bool stems_from(const Schedule& made, size_t handles, BlockRV block, const std::string& name) {
  if (made.state().num_handles() < handles) return false;
  const auto* row = std::get_if<Handle::BlockId>(&made.state().handle(block.index).target);
  return row && row->name == name;
}

}  // namespace

Result<std::vector<BlockRV>> PostOrderApply::collect_blocks(Schedule& schedule, const Ref<Module>& module) const {
  std::vector<BlockRV> result;
  std::optional<uint32_t> only = schedule.state().working_function();
  for (const auto& [name, func] : module->functions) {
    auto number = schedule.state().function(name);
    if (!number.ok() || (only && *only != *number)) continue;
    auto tree = schedule.state().tree(*number);
    if (!tree.ok()) continue;
    std::set<std::string> names;
    std::vector<std::string> chosen;
    for (int at : post_order(**tree)) {
      Ref<Block> block = (*tree)->block_ref(at);
      if (!names.insert(block->name_hint).second) {
        Diagnostic error =
            schedule_error("post_order_apply/P1",
                           "Duplicated block name " + block->name_hint + " in function " + name + " not supported!",
                           "traces find blocks by their names: give each block of the function a name of its own");
        error.nodes.push_back(keep(block));
        return error;
      }
      if (filter_) {
        TW_TRY(accepted, filter_(block));
        if (!accepted) continue;
      }
      chosen.push_back(block->name_hint);
    }
    for (const std::string& block : chosen) {
      TW_TRY(rv, schedule.apply(GetBlock{.name = block, .func_name = name}));
      result.push_back(rv);
    }
  }
  return result;
}

Status PostOrderApply::initialize(const TuneContext& context) {
  refused_.clear();
  warnings_.clear();
  return SpaceGenerator::initialize(context);
}

void PostOrderApply::note(const ScheduleRule& rule, const std::vector<Failure>& failures) {
  for (const auto& [block, error] : failures) {
    auto& [count, first] = refused_[error.code.empty() ? "unknown" : error.code];
    if (count++ == 0) first = error.message;
    const std::string hint = error.hint.empty() ? "" : "\n  hint: " + error.hint;
    warnings_.once(rule.name() + " " + error.code, fmt::format("{} fails on block '{}', which stays as it was: {}{}",
                                                               rule.name(), block, error.message, hint));
  }
}

/// Applies the rule to the schedules, from the last block to the first.
Result<Schedules> PostOrderApply::apply_everywhere(const ScheduleRule& rule, Schedules schedules,
                                                   const std::vector<BlockRV>& blocks) {
  struct Pending {
    Schedule schedule;
    size_t blocks_left;
  };
  const bool is_custom = dynamic_cast<const ApplyCustomRule*>(&rule) != nullptr;
  std::vector<Pending> stack;
  for (Schedule& schedule : schedules) stack.push_back({std::move(schedule), blocks.size()});
  Schedules result;
  std::vector<Failure> failures;
  size_t asked = 0;
  while (!stack.empty()) {
    Pending top = std::move(stack.back());
    stack.pop_back();
    if (top.blocks_left == 0) {
      result.push_back(std::move(top.schedule));
      continue;
    }
    BlockRV block = blocks[--top.blocks_left];
    auto place = top.schedule.state().find(block);
    if (!place.ok() || (!is_custom && place->block().annotations.get("schedule_rule"))) {
      stack.push_back(std::move(top));
      continue;
    }
    const size_t handles = top.schedule.state().num_handles();
    const std::string name = std::get<Handle::BlockId>(top.schedule.state().handle(block.index).target).name;
    // Blocks that name no rule are nothing to custom ones.
    if (!is_custom || place->block().annotations.get("schedule_rule")) ++asked;
    auto results = rule.apply(top.schedule, block);
    if (results.ok() &&
        !std::ranges::all_of(*results, [&](const Schedule& each) { return stems_from(each, handles, block, name); })) {
      results = schedule_error("post_order_apply/P2",
                               "a rule returned a schedule for block '" + name + "' that is not made of the one it got",
                               "begin with the schedule that apply() is given, or with copies of it: sch.copy()");
    }
    if (results.ok()) {
      for (Schedule& schedule : *results) stack.push_back({std::move(schedule), top.blocks_left});
      continue;
    }
    // Running out of time or memory would repeat with the next block.
    if (results.error().blame == Blame::kResource) return std::move(results.error());
    failures.push_back({name, std::move(results.error())});
    stack.push_back(std::move(top));
  }
  note(rule, failures);
  if (asked > 0 && failures.size() == asked) return std::move(failures.front().error);
  return result;
}

Result<Schedules> PostOrderApply::generate_design_space(const Ref<Module>& module) {
  TW_TRY(start, Schedule::make(module, next_seed()));
  TW_TRY(blocks, collect_blocks(start, start.module()));
  Schedules schedules = {std::move(start)};
  for (const auto& rule : schedule_rules.value_or(ScheduleRules())) {
    TW_TRY(made, apply_everywhere(*rule, std::move(schedules), blocks));
    if (made.empty()) {
      return argument_error("space/empty", fmt::format("{}.apply() left no schedule: it returned []", rule->name()),
                            "return [sch] where there is nothing to do");
    }
    schedules = std::move(made);
  }
  return schedules;
}

std::shared_ptr<SpaceGenerator> PostOrderApply::clone() const {
  auto copy = std::make_shared<PostOrderApply>(*this);
  copy->clone_parts();
  return copy;
}

}  // namespace tilewright::search
