#include "analysis/axis_condition.h"

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// Returns the terms of a conjunction for which `is_removed` is false.
template <class F>
Expr without_terms(const Expr& condition, F&& is_removed) {
  if (const And* both = condition.as<And>()) {
    return logical_and(without_terms(both->a, is_removed), without_terms(both->b, is_removed));
  }
  return is_removed(condition) ? Expr(bool_imm(true)) : condition;
}

}  // namespace

Expr condition_beyond_domains(const BlockRealize& realize) {
  if (is_true(realize.predicate)) return realize.predicate;
  arith::Analyzer analyzer;
  for (size_t i : indices_of(realize.iter_values)) {
    const Ref<Range>& dom = realize.block->iter_vars[i]->dom;
    analyzer.assume(ge(realize.iter_values[i], dom->min));
    analyzer.assume(lt(realize.iter_values[i], dom->min + dom->extent));
  }
  return without_terms(realize.predicate, [&](const Expr& term) { return analyzer.can_prove_written_condition(term); });
}

Expr without_reduction_terms(const Expr& condition, const Tree& tree, int block) {
  if (is_true(condition)) return condition;
  auto analyzer = analyzer_above(tree, tree[block].scope);
  VarMap starts;
  for (const Ref<IterVar>& axis : tree.block_at(block).iter_vars) {
    if (is_reduction_axis(axis)) {
      starts.emplace(axis->var, axis->dom->min);
    } else {
      analyzer.bind(axis->var, axis->dom);
    }
  }
  if (starts.empty()) return condition;
  return without_terms(condition, [&](const Expr& term) {
    Expr asked = condition_on_axes(term, tree, block);
    if (!asked.defined()) return false;
    Expr at_start = substitute(asked, starts);
    return at_start != asked && analyzer.can_prove(at_start);
  });
}

Expr condition_on_axes(const Expr& condition, const Tree& tree, int block) {
  if (is_true(condition)) return condition;
  if (effect_of(condition) != Effect::kPure) return {};
  const BlockRealize& realize = *tree.realize_at(block);
  std::vector<int> loops = tree.loops_above(block);
  // A loop that neither the condition nor an axis uses only repeats instances.
  std::erase_if(loops, [&](int at) {
    auto uses = [&](const Expr& e) { return uses_var(e, tree.for_at(at).loop_var); };
    return !uses(condition) && none_of(realize.iter_values, uses);
  });
  auto analyzer = analyzer_above(tree, tree[block].scope);
  arith::IterDomains inputs = inputs_of(tree, loops);
  auto map = arith::detect_iter_map(realize.iter_values, inputs, {}, arith::IterMapLevel::kBijective, analyzer);
  if (!map.ok()) return {};
  std::vector<Expr> axes;
  for (const Ref<IterVar>& axis : realize.block->iter_vars) axes.push_back(axis->var);
  VarMap inverse = units_of(inputs);
  for (const auto& [loop_var, value] : arith::inverse_affine_iter_map(map.indices, axes, analyzer)) {
    // An axis of 64 bits may be bound to a loop of 32 bits.
    inverse.insert_or_assign(loop_var, cast(loop_var.get()->dtype, value));
  }
  Expr asked = substitute(condition, inverse);
  for (int at : loops) {
    if (uses_var(asked, tree.for_at(at).loop_var)) return {};
  }
  return analyzer.simplify(asked);
}

}  // namespace tilewright::analysis
