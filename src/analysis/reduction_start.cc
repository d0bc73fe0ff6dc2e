#include "analysis/reduction_start.h"

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::analysis {

ReductionStart reduction_start(const BlockRealize& realize, const std::vector<Ref<For>>& loops,
                               arith::Analyzer& analyzer) {
  VarMap first;
  arith::IterDomains inputs;
  Expr condition = bool_imm(true);
  for (const Ref<For>& loop : loops) {
    Expr extent = substitute(loop->extent, first);
    if (!analyzer.can_prove(gt(extent, 0))) {
      condition = logical_and(condition, gt(extent, 0));
    }
    inputs.emplace_back(loop->loop_var, range(loop->min, loop->extent));
    first[loop->loop_var] = substitute(loop->min, first);
  }
  const auto& axes = realize.block->iter_vars;
  VarMap begun;
  for (size_t i : indices_of(axes)) begun[axes[i]->var] = substitute(realize.iter_values[i], first);
  std::vector<Expr> steps;
  for (size_t i : indices_of(axes)) {
    if (!is_reduction_axis(axes[i])) continue;
    if (!analyzer.can_prove_equal(begun[axes[i]->var], substitute(axes[i]->dom->min, begun))) {
      return {{}, {}, "its reduction axis '" + axes[i]->var->name_hint + "' does not begin where its loops begin"};
    }
    steps.push_back(realize.iter_values[i]);
  }
  arith::IterMapResult map;
  if (!is_one_to_one(steps, inputs, realize.predicate, analyzer, &map)) {
    return {{}, {}, "its reduction axes may be at their beginnings more than once: " + map.errors.front()};
  }
  Expr predicate = analyzer.simplify(substitute(realize.predicate, first));
  return {logical_and(condition, predicate), predicate, {}};
}

}  // namespace tilewright::analysis
