#include "search/trace_apply.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "schedule/primitives/compute_inline.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_block.h"
#include "schedule/primitives/get_child_blocks.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/get_producers.h"
#include "schedule/primitives/parallel.h"
#include "schedule/primitives/reverse_compute_inline.h"
#include "schedule/primitives/sample_categorical.h"
#include "search/bind_block.h"
#include "search/loop_kinds.h"
#include "search/module_equality.h"
#include "search/rules/auto_inline.h"
#include "search/rules/block_conditions.h"
#include "search/rules/defaults.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using namespace schedule;  // NOLINT: instructions
using analysis::Tree;
using NameSet = std::unordered_set<std::string>;

/// NameSet of all blocks but roots, in program order.
std::vector<std::string> block_names(const State& state) {
  std::vector<std::string> names;
  for (const FoundBlock& found : blocks_of(state)) {
    if (found.block->name_hint != "root") names.push_back(found.block->name_hint);
  }
  return names;
}

/// The blocks that the one with this name takes values from, directly or not, and itself.
Result<NameSet> ancestors(Schedule schedule, const std::string& name) {
  NameSet seen;
  TW_TRY(first, schedule.apply(GetBlock{name, ""}));
  std::vector<BlockRV> open = {first};
  while (!open.empty()) {
    BlockRV block = open.back();
    open.pop_back();
    TW_TRY(place, schedule.state().find(block));
    if (!seen.insert(place.block().name_hint).second) continue;
    TW_TRY(producers, schedule.apply(GetProducers{block}));
    append_range(open, producers);
  }
  return seen;
}

/// The rule that inlines in the default space of the target.
Result<std::shared_ptr<ScheduleRule>> inlining_rule(const Target& target) {
  TW_TRY(rules, default_schedule_rules(target.is_in(TargetSet::kGpu) ? "cuda" : "llvm"));
  for (std::shared_ptr<ScheduleRule>& rule : rules) {
    if (dynamic_cast<const AutoInline*>(rule.get())) return std::move(rule);
  }
  return no_defaults(rule_kind(target));
}

/// Inlines spatial blocks behind the anchor that the trace does not speak of.
Status inline_what_follows(Schedule& schedule, const Trace& anchor_trace, const Target& target) {
  NameSet kept;
  for (const Step* step : anchor_trace.steps()) {
    if (const auto* get = step->instruction.as<GetBlock>()) kept.insert(get->name);
  }
  if (Ref<Block> anchor = find_anchor_block(schedule.module()); anchor.defined()) {
    TW_TRY(before, ancestors(schedule, anchor->name_hint));
    kept.insert(before.begin(), before.end());
  }
  TW_TRY(rule, inlining_rule(target));
  for (const std::string& name : block_names(schedule.state())) {
    if (kept.contains(name)) continue;
    Schedule trial = schedule;
    TW_TRY(block, trial.apply(GetBlock{name, ""}));
    TW_TRY(place, trial.state().find(block));
    if (!is_spatial_block(place.block())) continue;
    TW_TRY(made, rule->apply(trial, block));
    if (made.size() == 1 && made[0].trace().size() > trial.trace().size()) schedule = std::move(made[0]);
  }
  return Ok{};
}

/// Applies the steps of a trace as far as they speak of what the schedule has.
class AnchorReplay {
 public:
  explicit AnchorReplay(Schedule& schedule) : schedule_(schedule) {}

  Status run(const Trace& trace) {
    for (const Step* step : trace.steps()) TW_RETURN_IF_ERROR(apply(*step));
    return Ok{};
  }

 private:
  Status apply(const Step& step) {
    bool applies = true;
    Instruction instruction = with_handles(step.instruction, [&](HandleKind, uint32_t& number) {
      auto* known = find_value(numbers_, number);
      applies &= known != nullptr;
      if (known) number = *known;
    });
    const auto* get = instruction.as<GetBlock>();
    if (!applies || (get && !has_block(get->name))) return Ok{};  // outputs of the step stay unknown
    if (auto* reverse = instruction.as<ReverseComputeInline>()) {
      return first_accepted(instruction, ComputeInline{reverse->block});
    }
    if (auto* into = instruction.as<ComputeInline>()) {
      return first_accepted(instruction, ReverseComputeInline{into->block});
    }
    TW_TRY(outputs, schedule_.apply(instruction));
    bool is_prefix = instruction.is<GetChildBlocks>() && outputs.size() > step.outputs.size();
    if (!is_prefix && outputs.size() != step.outputs.size()) {
      return schedule_error("trace-apply/outputs",
                            std::string(kind_info(instruction).method) + "() gave " + std::to_string(outputs.size()) +
                                " handles where the trace has " + std::to_string(step.outputs.size()),
                            "the anchor blocks of both programs are not the same");
    }
    for (size_t i : indices_of(step.outputs)) {
      if (step.outputs[i] != LoopRV::kNone) numbers_[step.outputs[i]] = outputs[i];
    }
    return Ok{};
  }

  /// A block of the same name may have to go the other way here.
  Status first_accepted(const Instruction& wanted, const Instruction& otherwise) {
    auto done = schedule_.apply(wanted);
    if (done.ok() || schedule_.apply(otherwise).ok()) return Ok{};
    return std::move(done.error());
  }

  bool has_block(const std::string& name) const {
    for (const FoundBlock& found : blocks_of(schedule_.state())) {
      if (found.block->name_hint == name) return true;
    }
    return false;
  }

  Schedule& schedule_;
  std::unordered_map<uint32_t, uint32_t> numbers_;
};

/// Returns the kinds of the loops around each block, by block name.
std::unordered_map<std::string, std::vector<ForKind>> loop_kinds(const State& state) {
  std::unordered_map<std::string, std::vector<ForKind>> result;
  for (const FoundBlock& found : blocks_of(state)) {
    auto tree = state.tree(found.func);
    std::vector<ForKind> kinds;
    for (int loop : (*tree)->loops_above((*tree)->block(found.block->id.value))) {
      kinds.push_back((*tree)->for_at(loop).kind);
    }
    result.emplace(found.block->name_hint, std::move(kinds));
  }
  return result;
}

/// The last block, which no step has touched.
Status schedule_rest(Schedule& schedule, const std::string& name, const Target& target) {
  TW_TRY(block, schedule.apply(GetBlock{name, ""}));
  TW_TRY(producers, schedule.apply(GetProducers{block}));
  if (producers.size() == 1) {
    TW_TRY(producer, schedule.state().find(producers[0]));
    if (is_spatial_block(producer.block())) {
      TW_RETURN_IF_ERROR(schedule.apply(ReverseComputeInline{block}));
      return Ok{};
    }
  }
  if (target.is_in(TargetSet::kGpu)) {
    auto threads = [](Schedule& sampler, int64_t max_extent) -> Result<Factor> {
      SampleCategorical sample;
      for (int64_t extent : {32, 64, 128, 256, 512, 1024}) {
        if (extent <= max_extent) sample.candidates.push_back(extent);
      }
      if (sample.candidates.empty()) return Factor(max_extent);
      sample.probs.assign(sample.candidates.size(), 1.0 / static_cast<double>(sample.candidates.size()));
      TW_TRY(sampled, sampler.apply(sample));
      return Factor(sampled);
    };
    return bind_block_thread_idx(schedule, block, 256, target.max_threads_per_block, threads);
  }
  TW_TRY(loops, schedule.apply(GetLoops{block}));
  if (loops.empty()) return Ok{};
  TW_TRY(fused, schedule.apply(Fuse{{loops}}));
  TW_RETURN_IF_ERROR(schedule.apply(Parallel{fused}));
  return Ok{};
}

}  // namespace

Status schedule_using_anchor_trace(Schedule& schedule, const Trace& anchor, const Target& target) {
  TW_RETURN_IF_ERROR(inline_what_follows(schedule, anchor, target));
  auto before = loop_kinds(schedule.state());
  TW_RETURN_IF_ERROR(AnchorReplay(schedule).run(anchor));
  std::vector<std::string> untouched;
  for (const auto& [name, kinds] : loop_kinds(schedule.state())) {
    auto* known = find_value(before, name);
    if (name != "root" && known && *known == kinds) untouched.push_back(name);
  }
  if (untouched.size() > 1) {
    std::ranges::sort(untouched);
    std::string names;
    for (const std::string& name : untouched) names += (names.empty() ? "'" : ", '") + name + "'";
    return schedule_error("trace-apply/rest", "the trace leaves several blocks as they were: " + names,
                          "at most one may follow the anchor once the others are inlined");
  }
  return untouched.empty() ? Status(Ok{}) : schedule_rest(schedule, untouched[0], target);
}

}  // namespace tilewright::search
