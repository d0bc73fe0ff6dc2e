#include "schedule/declarations.h"

#include "analysis/block_facts.h"
#include "ir/traverse.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Blocks that touch what they declare, for all that can be seen, and more behind pointers than can be seen.
std::vector<const Block*> unseen_blocks(const Tree& tree) {
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
    analysis::take_at_its_word(marked);
    return make(std::move(marked), old.span());
  });
}

template <class T>
Ref<T> without_marks(const Ref<T>& root) {
  return rewrite(root, [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
    Ref<Block> inner = walk.descend(old);
    if (!analysis::is_taken_at_its_word(*inner)) return inner;
    Block plain = *inner;
    analysis::forget_its_word(plain);
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

std::optional<Plan> plan_believing(const State& state, const Instruction& instruction, uint32_t func,
                                   const Ref<Block>& root, const std::vector<const Block*>& blocks) {
  State marked = state;
  marked.commit({.func = func, .root = with_marks(root, blocks)});
  Result<Plan> planned = plan(marked, instruction);
  return planned.ok() ? std::optional(std::move(*planned)) : std::nullopt;
}

}  // namespace

std::optional<Plan> plan_by_declarations(const State& state, const Instruction& instruction) {
  auto func = kind_info(instruction).believes ? function_of(state, instruction) : std::nullopt;
  if (!func) return std::nullopt;
  auto tree = state.tree(*func);
  if (!tree.ok()) return std::nullopt;
  const Ref<Block>& root = (*tree)->block_ref((*tree)->blocks().front());
  std::vector<const Block*> believed = unseen_blocks(**tree);
  if (believed.empty()) return std::nullopt;
  auto plan = plan_believing(state, instruction, *func, root, believed);
  if (!plan) return std::nullopt;
  for (size_t i = believed.size(); i-- > 0 && believed.size() > 1;) {
    std::vector<const Block*> fewer = believed;
    erase_at(fewer, i);
    if (auto other = plan_believing(state, instruction, *func, root, fewer)) {
      plan = std::move(other);
      believed = std::move(fewer);
    }
  }
  plan->root = without_marks(plan->root);
  for (const Block* block : believed) {
    plan->stated +=
        (plan->stated.empty() ? "" : "; ") + describe_block(*block) + " does what its axes and regions declare";
  }
  return plan;
}

}  // namespace tilewright::schedule
