#include "schedule/runs_at_all.h"

#include <algorithm>

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::schedule {

Expr all_positive(const std::vector<Expr>& extents, arith::Analyzer& analyzer) {
  Expr condition = bool_imm(true);
  for (const Expr& extent : extents) {
    Expr some = gt(extent, zero(extent.dtype()));
    if (!analyzer.can_prove(some)) condition = logical_and(condition, some);
  }
  return condition;
}

Expr runs_at_all(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer) {
  const BlockRealize& realize = *tree.realize_at(block);
  const arith::Region reached = analysis::bound_region(realize, write);
  std::vector<Expr> extents, steps;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    if (!analysis::is_reduction_axis(realize.block->iter_vars[i])) continue;
    extents.push_back(realize.block->iter_vars[i]->dom->extent);
    steps.push_back(realize.iter_values[i]);
  }
  for (int at : loops) {
    const For& loop = tree.for_at(at);
    auto drives = [&](const Expr& e) { return uses_var(e, loop.loop_var); };
    bool says = std::any_of(reached.begin(), reached.end(),
                            [&](const Ref<Range>& r) { return drives(r->min) || drives(r->extent); });
    if (!says && std::none_of(steps.begin(), steps.end(), drives)) extents.push_back(loop.extent);
  }
  Expr condition = all_positive(extents, analyzer);
  auto is_inner = [&](const Ref<Var>& v) {
    return std::any_of(loops.begin(), loops.end(), [&](int at) { return tree.for_at(at).loop_var == v; });
  };
  return uses_any_var(condition, is_inner) || effect_of(condition) != Effect::kPure ? Expr() : condition;
}

bool surely_runs(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer) {
  Expr condition = runs_at_all(tree, block, write, loops, analyzer);
  return condition.defined() && is_true(condition);
}

bool may_not_read(const NodeRef& body) {
  bool chooses = false;
  visit(
      body, [&](const Ref<And>&) { chooses = true; }, [&](const Ref<Or>&) { chooses = true; },
      [&](const Ref<IfThenElse>&) { chooses = true; }, [&](const Ref<While>&) { chooses = true; },
      [&](const Ref<Call>& call, Visitor& walk) {
        chooses |= intrinsic_of(*call) == Intrinsic::k_if_then_else;
        walk.descend(call);
      });
  return chooses;
}

bool is_read_anyhow(const analysis::Tree& tree, const std::vector<int>& readers, const Ref<Buffer>& buffer,
                    const arith::Box& box, int outside) {
  return std::any_of(readers.begin(), readers.end(), [&](int reader) {
    auto loops = analysis::loops_between(tree, outside, reader);
    if (!loops) return false;
    arith::Analyzer analyzer;
    analysis::bind_above(analyzer, tree, outside);
    const Block& block = tree.block_at(reader);
    return !may_not_read(block.body) &&
           std::any_of(block.reads.begin(), block.reads.end(), [&](const Ref<BufferRegion>& read) {
             if (read->buffer != buffer) return false;
             auto has = surely_runs(tree, reader, read, *loops, analyzer)
                            ? analysis::produced(*tree.realize_at(reader), read, tree, *loops, analyzer)
                            : std::nullopt;
             return has && arith::proves_subset(box, *has, analyzer);
           });
  });
}

}  // namespace tilewright::schedule
