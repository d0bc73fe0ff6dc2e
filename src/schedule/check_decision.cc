#include "schedule/check_decision.h"

#include "schedule/primitives/sample_partitioned_tile.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/state.h"

namespace tilewright::schedule {
namespace {

std::string text_of(const Value& decision) {
  if (const auto* number = decision.as<int64_t>()) return std::to_string(*number);
  std::string text;
  const auto* list = decision.as<Value::List>();
  for (size_t i = 0; list && i < list->size(); ++i) text += (i ? ", " : "") + text_of((*list)[i]);
  return "[" + text + "]";
}

/// Describe the decisions that a sampling instruction accepts.
std::string rule_of(const Instruction& taken) {
  const auto* perfect = taken.as<SamplePerfectTile>();
  const auto* parted = taken.as<SamplePartitionedTile>();
  if (!perfect && !parted) return "it takes the number of a loop at which the block can be computed, -1 or -2";
  const auto& factors = *(perfect ? perfect->decision : parted->decision).value;
  int64_t extent = 1;
  for (int64_t factor : factors) extent *= factor;
  if (extent < 0) return "the loop has no constant extent, so there is nothing to decide";
  std::string rule = "it takes " + std::to_string(factors.size()) + " factors of at least 1 whose product is " +
                     std::to_string(extent) + ", the extent of the loop";
  if (parted) {
    rule += "; that of those from number " + std::to_string(parted->partition_pos) + " on is a multiple of " +
            std::to_string(parted->innerpart_factor);
  }
  return rule;
}

}  // namespace

Status check_taken(const Value& decision, const Instruction& taken) {
  if (decision.is_none() || decision == decision_of(taken)) return Ok{};
  return argument_error("schedule/decision",
                        std::string(kind_info(taken).method) + "() cannot take " + text_of(decision) +
                            " as its decision: " + text_of(decision_of(taken)) + " would come of it",
                        rule_of(taken));
}

Status check_decision(const Step& step, const Value& decision) {
  TW_TRY(changed, with_decision(step.instruction, decision));
  if (!step.before) return Ok{};
  TW_TRY(planned, plan(*step.before, changed));
  return planned.recorded ? check_taken(decision, *planned.recorded) : Status(Ok{});
}

}  // namespace tilewright::schedule
