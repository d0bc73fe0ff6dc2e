#include "search/rules/auto_inline.h"

#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/primitive.h"
#include "schedule/primitives/compute_inline.h"
#include "schedule/primitives/reverse_compute_inline.h"
#include "search/loop_kinds.h"
#include "search/rules/block_conditions.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

enum class Inline { kNo, kIntoConsumer, kIntoProducer };

std::string_view op_name(const Call& call) {
  const Op* op = call.op.as<Op>();
  return op ? std::string_view(op->name) : std::string_view();
}

bool calls_any(const Stmt& stmt, const std::vector<std::string>& ops) {
  return any_node(stmt, [&](const Ref<Call>& call) { return is_contained(ops, op_name(*call)); });
}

/// A condition on what is computed, or on whether it is.
bool has_branch(const Stmt& stmt) {
  return has_node<IfThenElse, Select>(stmt) ||
         any_node(
             stmt, [](const Ref<BlockRealize>& realize) { return !is_true(realize->predicate); },
             [](const Ref<Call>& call) { return op_name(*call) == "tir.if_then_else"; });
}

/// The conditions that only functions have to meet which reduce something.
bool is_allowed(const Place& place, const AutoInlineOptions& options) {
  Stmt realize = place.tree->stmt(place.at);
  if (!options.disallow_op.empty() && calls_any(realize, options.disallow_op)) return false;
  if (options.disallow_if_then_else && has_branch(realize)) return false;
  if (!options.require_injective && !options.require_ordered) return true;
  const Block& block = place.block();
  return all_of(block.reads, [&](const Ref<BufferRegion>& read) {
    ReadWritePattern pattern = read_write_pattern(*read, *block.writes[0]);
    return (!options.require_injective || pattern.injective) && (!options.require_ordered || pattern.ordered);
  });
}

Inline choose(const Schedule& schedule, BlockRV rv, const Place& place, const AutoInlineOptions& options) {
  const Block& block = place.block();
  if (place.tree->realize_at(place.at) == nullptr || block.writes.size() != 1) return Inline::kNo;
  std::vector<Place> consumers = consumers_of(place);
  if (options.inline_const_tensor && block.reads.empty() && !consumers.empty()) return Inline::kIntoConsumer;
  if (!is_spatial_function(*place.tree) && !is_allowed(place, options)) return Inline::kNo;
  if (text_annotation(block.annotations, "meta_schedule.inline_rule") == "disable") return Inline::kNo;
  if (options.into_consumer && !consumers.empty() && plan(schedule.state(), ComputeInline{rv}).ok()) {
    return Inline::kIntoConsumer;
  }
  if (!options.into_producer) return Inline::kNo;
  std::vector<Place> producers = producers_of(place);
  bool fits = producers.size() == 1 && is_complete_block(producers[0]) &&
              !producers[0].block().annotations.has("meta_schedule.auto_tensorize") &&
              plan(schedule.state(), ReverseComputeInline{rv}).ok();
  return fits ? Inline::kIntoProducer : Inline::kNo;
}

}  // namespace

Result<Schedules> AutoInline::apply(Schedule schedule, BlockRV rv) const {
  TW_TRY(place, schedule.state().find(rv));
  switch (choose(schedule, rv, place, options_)) {
    case Inline::kIntoConsumer: {
      // A block without reads makes a tensor of constants: whether it can be inlined was not checked before, so a
      // refusal is no error.
      auto done = schedule.apply(ComputeInline{rv});
      if (!done.ok() && !place.block().reads.empty()) return std::move(done.error());
      break;
    }
    case Inline::kIntoProducer:
      TW_RETURN_IF_ERROR(schedule.apply(ReverseComputeInline{rv}));
      break;
    case Inline::kNo:
      break;
  }
  return Schedules{std::move(schedule)};
}

}  // namespace tilewright::search
