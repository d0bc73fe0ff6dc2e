#include "analysis/block_flags.h"

#include "analysis/cover.h"
#include "analysis/scope.h"
#include "arith/region_bound.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

bool has_affine_binding(const Tree& tree, int block) {
  const BlockRealize* realize = tree.realize_at(block);
  if (!realize) return true;
  arith::Analyzer analyzer;
  return arith::detect_iter_map(realize->iter_values, inputs_of(tree, tree.loops_above(block)), realize->predicate,
                                arith::IterMapLevel::kSurjective, analyzer)
      .ok();
}

/// Returns the union of all regions that the producers write below `from`, if it is known to be a box.
std::optional<arith::Box> provided(const Tree& tree, int from, const std::vector<int>& producers,
                                   const Ref<Buffer>& buffer, arith::Analyzer& analyzer) {
  std::optional<arith::Box> all;
  for (int producer : producers) {
    auto loops = loops_between(tree, from, producer);
    if (!loops) continue;
    const BlockRealize& realize = *tree.realize_at(producer);
    for (const Ref<BufferRegion>& write : realize.block->writes) {
      if (!tree.same_memory(write->buffer, buffer)) continue;
      auto box = surely_reached(bound_region(realize, write), inputs_of(tree, *loops), realize.predicate, analyzer);
      if (box) all = all ? arith::unite_lower_bound(*all, *box, analyzer) : *box;
    }
  }
  return all;
}

bool is_covered(const Tree& tree, int block) {
  if (!tree.realize_at(block)) return true;
  const Scope& scope = Scope::of(tree, tree[block].scope);
  int self = scope.child(tree.block_at(block).id.value);
  for (const Ref<BufferRegion>& read : tree.block_at(block).reads) {
    std::vector<int> producers;
    for (int child : scope.writers(read->buffer)) {
      if (child < self) producers.push_back(scope.position(tree, child));
    }
    if (producers.empty()) continue;
    std::vector<int> all = producers;
    all.push_back(block);
    int from = tree.common_ancestor(all);
    std::vector<int> loops = tree.loops_above(block);
    std::erase_if(loops, [&](int at) { return at <= from; });
    auto analyzer = analyzer_above(tree, from);
    auto has = provided(tree, from, producers, read->buffer, analyzer);
    if (!has) return false;
    if (!arith::proves_subset(required(*tree.realize_at(block), read, {}, tree, loops, analyzer), *has, analyzer)) {
      return false;
    }
  }
  return true;
}

bool is_stage_pipeline(const Tree& tree, int block) {
  const Scope& scope = Scope::of(tree, block);
  for (const Dependence& dependence : scope.dependences()) {
    if (dependence.kind == DependenceKind::kAnti) return false;
  }
  return all_of(scope.children(),
                [&](const BlockRealize* child) { return is_covered(tree, tree.block(child->block->id.value)); });
}

}  // namespace

BlockFlags block_flags(const Tree& tree, int block) {
  return {.affine_binding = has_affine_binding(tree, block),
          .region_cover = is_covered(tree, block),
          .stage_pipeline = is_stage_pipeline(tree, block)};
}

}  // namespace tilewright::analysis
