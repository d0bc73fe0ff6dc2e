#include "search/loop_kinds.h"

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "schedule/primitives/get_block.h"
#include "support/ranges.h"

namespace tilewright::search {

using analysis::Tree;

LoopUse loop_use(const Tree& tree, int loop) {
  bool reduces = false, other = false, spatial = false;
  const Ref<Var>& loop_var = tree.for_at(loop).loop_var;
  for (int block : tree.child_blocks(loop)) {
    const BlockRealize& realize = *tree.realize_at(block);
    for (size_t i : indices_of(realize.iter_values)) {
      if (!uses_var(realize.iter_values[i], loop_var)) continue;
      const Ref<IterVar>& axis = realize.block->iter_vars[i];
      (analysis::is_data_parallel(axis) ? spatial : analysis::is_reduction_axis(axis) ? reduces : other) = true;
    }
  }
  if (other || (reduces && spatial)) return LoopUse::kOther;
  return reduces ? LoopUse::kReduction : LoopUse::kSpatial;
}

bool is_plain(const For& loop) { return loop.kind == ForKind::kSerial && loop.annotations.empty(); }

bool has_single_body(const For& loop) { return !loop.body.is<SeqStmt>(); }

Result<schedule::BlockRV> handle_of(schedule::Schedule& schedule, uint32_t func, const Block& block) {
  return schedule.apply(schedule::GetBlock{block.name_hint, schedule.state().function_name(func)});
}

std::vector<FoundBlock> blocks_of(const schedule::State& state) {
  std::vector<FoundBlock> result;
  for (uint32_t func = 0; func < state.module()->functions.size(); ++func) {
    auto tree = state.tree(func);
    if (!tree.ok()) continue;
    for (int at : (*tree)->blocks()) result.push_back({func, (*tree)->block_ref(at)});
  }
  return result;
}

std::optional<int64_t> integer_annotation(const Annotations& annotations, std::string_view key) {
  NodeRef value = annotations.get(key);
  const IntImm* number = value.as<IntImm>();
  return number ? std::optional(number->value) : std::nullopt;
}

std::optional<std::string> text_annotation(const Annotations& annotations, std::string_view key) {
  NodeRef value = annotations.get(key);
  const StringImm* text = value.as<StringImm>();
  return text ? std::optional(text->value) : std::nullopt;
}

}  // namespace tilewright::search
