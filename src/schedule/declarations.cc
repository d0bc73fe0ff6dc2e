#include "schedule/declarations.h"

#include "analysis/block_facts.h"
#include "ir/traverse.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Returns the blocks that use pointers, and whose other accesses are all declared.
std::vector<const Block*> blocks_with_pointers(const Tree& tree) {
  std::vector<const Block*> found;
  for (int at : tree.blocks()) {
    const Block& block = tree.block_at(at);
    if (block.init.defined() || analysis::BlockFacts::of(tree.block_ref(at)).trusted.empty()) continue;
    found.push_back(&block);
  }
  return found;
}

Ref<Block> with_marks(const Ref<Block>& root, const std::vector<const Block*>& blocks) {
  return rewrite(root, [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
    Ref<Block> inner = walk.descend(old);
    if (none_of(blocks, [&](const Block* block) { return block == old.as<Block>(); })) return inner;
    Block marked = *inner;
    analysis::assume_declarations(marked);
    return make(std::move(marked), old.span());
  });
}

template <class T>
Ref<T> without_marks(const Ref<T>& root) {
  return rewrite(root, [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
    Ref<Block> inner = walk.descend(old);
    if (!analysis::has_assumed_declarations(*inner)) return inner;
    Block plain = *inner;
    analysis::clear_assumed_declarations(plain);
    return make(std::move(plain), old.span());
  });
}

/// Returns the function of the first block or loop in the inputs of the instruction.
std::optional<uint32_t> function_of(const State& state, const Instruction& instruction) {
  std::optional<uint32_t> found;
  for_each_handle(instruction, [&](HandleKind kind, uint32_t number) {
    if (!found && kind != HandleKind::kExpr) found = state.handle(number).func;
  });
  return found;
}

std::optional<Plan> plan_assuming(const State& state, const Instruction& instruction, uint32_t func,
                                  const Ref<Block>& root, const std::vector<const Block*>& blocks) {
  State marked = state;
  marked.commit({.func = func, .root = with_marks(root, blocks)});
  Result<Plan> planned = plan(marked, instruction);
  return planned.ok() ? std::optional(std::move(*planned)) : std::nullopt;
}

}  // namespace

std::optional<Plan> plan_by_declarations(const State& state, const Instruction& instruction) {
  auto func = kind_info(instruction).may_assume_declarations ? function_of(state, instruction) : std::nullopt;
  if (!func) return std::nullopt;
  auto tree = state.tree(*func);
  if (!tree.ok()) return std::nullopt;
  const Ref<Block>& root = (*tree)->block_ref((*tree)->blocks().front());
  std::vector<const Block*> assumed = blocks_with_pointers(**tree);
  if (assumed.empty()) return std::nullopt;
  auto plan = plan_assuming(state, instruction, *func, root, assumed);
  if (!plan) return std::nullopt;
  for (size_t i = assumed.size(); i-- > 0 && assumed.size() > 1;) {
    std::vector<const Block*> fewer = assumed;
    erase_at(fewer, i);
    if (auto other = plan_assuming(state, instruction, *func, root, fewer)) {
      plan = std::move(other);
      assumed = std::move(fewer);
    }
  }
  plan->root = without_marks(plan->root);
  for (const Block* block : assumed) {
    plan->stated +=
        (plan->stated.empty() ? "" : "; ") + describe_block(*block) + " does what its axes and regions declare";
  }
  return plan;
}

}  // namespace tilewright::schedule
