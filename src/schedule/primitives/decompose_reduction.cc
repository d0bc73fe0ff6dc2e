// Move the init of a reduction into a separate block before a loop.
//
//   Before                                After  sch.decompose_reduction(C, k)
//   for i, k in T.grid(16, 32):           for i in range(16):
//     with T.block("C"):                    with T.block("C_init"):
//       vi = T.axis.spatial(16, i)            vi = T.axis.spatial(16, i)
//       vk = T.axis.reduce(32, k)             C[vi] = 0.0
//       with T.init():                      for k in range(32):
//         C[vi] = 0.0                         with T.block("C_update"):
//       C[vi] = C[vi] + A[vi, vk]               vi = T.axis.spatial(16, i)
//                                               vk = T.axis.reduce(32, k)
//                                               C[vi] = C[vi] + A[vi, vk]
//
// Requires  P1 the block is a reduction block with an init
//           P2 the loop is around it, in the same scope
//           P3 no loop around that one drives the reduction
//           P4 below it each element is reduced exactly once, beginning where the loops begin; the init is skipped
//              where that first step does not exist, as long as none of that element does; it runs there, too, in a
//              block that is annotated init_without_steps
//           P5 below the loop no other block writes its buffers, none before reads them, and others read them only when
//              complete
//           P6 what the init reads is complete before the loop
//           P9 parallel loops around stay independent

#include "schedule/primitives/decompose_reduction.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/changes.h"
#include "analysis/reduction_start.h"
#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/early_bounds.h"
#include "schedule/edit.h"
#include "schedule/inits.h"
#include "schedule/redeclare.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

bool drives(const Tree& tree, int loop, const BlockRealize& realize, bool (*kind)(const Ref<IterVar>&)) {
  for (size_t i : indices_of(realize.iter_values)) {
    if (kind(realize.block->iter_vars[i]) && uses_var(realize.iter_values[i], tree.for_at(loop).loop_var)) return true;
  }
  return false;
}

/// Whether another block that touches what the block writes stands below the loop, in front of which the init will run.
bool others_are_below(const Tree& tree, const analysis::Scope& scope, int self, int loop) {
  for (const Ref<BufferRegion>& write : scope.children()[self]->block->writes) {
    for (const std::vector<int>& users : {scope.writers(write->buffer), scope.readers(write->buffer)}) {
      for (int user : users) {
        if (user != self && tree.contains(loop, scope.position(tree, user))) return true;
      }
    }
  }
  return false;
}

Status check(const Place& block, const Place& loop) {
  const Tree& tree = *block.tree;
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(block.at));
  if (facts.role != analysis::BlockRole::kReduction) {
    return refuse("decompose_reduction/P1",
                  describe(block) + " is not a reduction block" +
                      (facts.why.empty() ? std::string(": it has no init") : ": " + facts.why),
                  block, "name a block with T.init()");
  }
  std::vector<int> loops = tree.loops_above(block.at);
  if (block.func != loop.func || !is_contained(loops, loop.at)) {
    return refuse("decompose_reduction/P2", describe(loop) + " is not around " + describe(block),
                  {block.node(), loop.node()}, "take one of get_loops(block)");
  }
  for (int at : loops) {
    if (at == loop.at) break;
    if (drives(tree, at, *tree.realize_at(block.at), analysis::is_reduction_axis)) {
      return refuse("decompose_reduction/P3",
                    describe_loop(tree.for_at(at)) + ", which is around " + describe(loop) + ", drives the reduction",
                    {tree.stmt(at), loop.node(), block.node()}, "take that loop or one around it");
    }
  }
  TW_RETURN_IF_ERROR(require_inits_run(block, "decompose_reduction/P4"));
  if (auto obstacle = analysis::why_irregular_reduction(tree, tree[loop.at].parent, block.at, true)) {
    return refuse("decompose_reduction/P4", *obstacle,
                  tree[loop.at].parent == tree[loop.at].scope
                      ? "decompose before the loops of the reduction are changed, or at a loop further in"
                      : "decompose before the loops of the reduction are changed, or at a loop further out or further "
                        "in");
  }
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[block.at].scope);
  int self = scope.child(block.block().id.value);
  if (others_are_below(tree, scope, self, loop.at)) {
    TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, "decompose_reduction/P5", false));
  } else {
    TW_RETURN_IF_ERROR(check_bare_statements(block, scope, "decompose_reduction/P5", false));
  }
  for (int child : scope.consumers(self)) {
    int consumer = scope.position(tree, child);
    if (!tree.contains(loop.at, consumer)) continue;
    for (const Ref<BufferRegion>& write : block.block().writes) {
      if (auto obstacle = analysis::why_not_covered(tree, block.at, consumer, write->buffer)) {
        return refuse("decompose_reduction/P5", *obstacle, "decompose at a loop further out");
      }
    }
  }
  return Ok{};
}

/// The init as a block over the spatial axes, under copies of the loops that drive them.
Result<Stmt> init_nest(const Tree& tree, int block, int loop, const std::string& name, Ref<Block>* made) {
  const BlockRealize& realize = *tree.realize_at(block);
  VarMap axes, loop_vars;
  Block init;
  std::vector<Expr> values;
  for (size_t i : indices_of(realize.iter_values)) {
    const Ref<IterVar>& axis = realize.block->iter_vars[i];
    if (!analysis::is_data_parallel(axis)) continue;
    IterVar copy = *axis;
    Ref<Var> v = make<Var>(*axis->var, axis->var.span());
    axes.emplace(axis->var, v);
    copy.var = v;
    init.iter_vars.push_back(make(std::move(copy)));
    values.push_back(realize.iter_values[i]);
  }
  init.name_hint = name;
  init.annotations = realize.block->annotations;
  init.annotations.erase(kAtomic);  // an init sets elements, it updates none
  init.body = substitute(realize.block->init, axes);
  for (const Ref<BufferRegion>& write : realize.block->writes) init.writes.push_back(substitute(write, axes));
  init.reads = analysis::block_access_region(make<Block>(Block(init))).reads;

  // Loops that drive no spatial axis are dropped: the init runs where they start.
  std::vector<int> copied, dropped;
  std::vector<Ref<For>> reduction;
  auto analyzer = analysis::analyzer_above(tree, tree[loop].parent);
  analysis::assume_runs_around(analyzer, tree, tree[loop].parent);
  for (int at : tree.loops_above(block)) {
    if (at < loop) continue;
    const For& old = tree.for_at(at);
    if (drives(tree, at, realize, analysis::is_data_parallel)) {
      if (may_fail_outside({old.min, old.extent}, tree, dropped, analyzer)) {
        return refuse("decompose_reduction/P4",
                      "the range of " + describe_loop(old) + " may divide by zero, or read out of bounds, where " +
                          describe_loop(tree.for_at(dropped.front())) + " has no iteration",
                      {tree.stmt(at), tree.stmt(dropped.front())},
                      "put the loops of the spatial axes around those of the reduction");
      }
      copied.push_back(at);
      analyzer.bind(old.loop_var, old.min, old.extent);
      analysis::assume_runs(analyzer, tree, {at});
      loop_vars.emplace(old.loop_var, var(old.loop_var->name_hint + "_init", old.loop_var.dtype()));
    } else {
      dropped.push_back(at);
      reduction.push_back(tree.stmt(at).borrow<For>());
    }
  }
  analysis::ReductionStart start = analysis::reduction_start(realize, reduction, analyzer);
  if (!start.condition.defined()) {
    return refuse("decompose_reduction/P4", describe_block(*realize.block) + " cannot be decomposed: " + start.why_not,
                  {tree.stmt(block)}, "decompose before the loops around the block are changed");
  }
  for (const Ref<For>& loop : reduction) {
    for (int at : copied) {
      const For& inner = tree.for_at(at);
      if (!uses_var(inner.min, loop->loop_var) && !uses_var(inner.extent, loop->loop_var)) continue;
      return refuse("decompose_reduction/P4",
                    describe_loop(inner) + " depends on " + describe_loop(*loop) + ", which drives the reduction",
                    {tree.stmt(at), loop},
                    "put the loops of the spatial axes around those of the reduction, each with a range of its own and "
                    "the dependence in the other one: for i in range(n): for k in range(i + 1) instead of "
                    "for k in range(n): for i in range(k, n)");
    }
  }
  auto renamed = [&](const Expr& e) { return substitute(e, loop_vars); };
  for (Expr& value : values) value = renamed(value);
  init.annotations.erase(kInitWithoutSteps);
  Expr predicate = renamed(has_init_without_steps(*realize.block) ? start.predicate : start.condition);
  *made = make(std::move(init), realize.block.span());
  Stmt nest = make<BlockRealize>({.iter_values = std::move(values), .predicate = predicate, .block = *made});
  for (int at : reversed(copied)) {
    For copy = tree.for_at(at);
    copy.loop_var = loop_vars.at(copy.loop_var).borrow<Var>();
    copy.min = renamed(copy.min);
    copy.extent = renamed(copy.extent);
    copy.annotations = {};
    copy.body = std::move(nest);
    nest = make(std::move(copy), tree[at].node->span);
  }
  return nest;
}

/// Requires that conditions which move before the loop read no buffer that the scope writes.
Status check_settled(const Place& block, const Stmt& nest) {
  const Tree& tree = *block.tree;
  const Stmt& body = tree.block_at(tree[block.at].scope).body;
  NodeRef changing;
  auto look = [&](const Expr& e) {
    if (e.is<Var>() || e.is<IntImm>()) return;
    visit(e, [&](const Ref<BufferLoad>& load) {
      if (analysis::may_change(tree, body, load)) changing = load;
    });
  };
  visit(
      nest,
      [&](const Ref<For>& loop, Visitor& walk) {
        look(loop->min);
        look(loop->extent);
        walk(loop->body);
      },
      [&](const Ref<BlockRealize>& realize, Visitor& walk) {
        look(realize->predicate);
        for (const Expr& value : realize->iter_values) look(value);
        walk(realize->block->init);
        walk(realize->block->body);
      },
      [](const Ref<BufferStore>&, Visitor&) {});
  if (!changing.defined()) return Ok{};
  return refuse("decompose_reduction/P6",
                "the loops or the condition of " + describe(block) + " read '" +
                    changing.as<BufferLoad>()->buffer->name + "', which the scope changes",
                {block.node(), changing}, "decompose before the two blocks are put into one loop");
}

}  // namespace

Result<Plan> plan(const State& state, const DecomposeReduction& decompose) {
  TW_TRY(block, state.find(decompose.block));
  TW_TRY(loop, state.find(decompose.loop));
  TW_RETURN_IF_ERROR(check(block, loop));
  const std::string name = block.block().name_hint;
  Ref<Block> init;
  TreeEdit edit(*block.tree);
  TW_TRY(nest, init_nest(*block.tree, block.at, loop.at, name + "_init", &init));
  TW_RETURN_IF_ERROR(check_settled(block, nest));
  edit.insert_before(loop.at, nest);
  edit.change_block(block.at, [&](Block& update) {
    update.name_hint = name + "_update";
    update.init = {};
    update.annotations.erase(kInitWithoutSteps);
    // The update block reads the accumulator, so add its region to the reads unless the block has declared it.
    std::vector<Ref<BufferRegion>> reads;
    for (const Ref<BufferRegion>& write : update.writes) {
      bool known = any_of(update.reads, [&](const Ref<BufferRegion>& read) { return read->buffer == write->buffer; });
      if (!known) reads.push_back(write);
    }
    update.reads.insert(update.reads.begin(), reads.begin(), reads.end());
  });
  // Blocks around it read what the update accumulates into.
  Plan plan = give_loops(block.func, with_regions_around(*block.tree, edit.finish(), init->id.value), {});
  const Tree& after = Tree::of(plan.root);
  int first = after.block(init->id.value);
  if (auto obstacle = analysis::why_inputs_incomplete(after, first))
    return refuse("decompose_reduction/P6", *obstacle, "decompose at a loop further out");
  TW_RETURN_IF_ERROR(recheck_execution(after, first, "decompose_reduction/P9"));
  plan.outputs.push_back(Handle::block(block.func, *init));
  return plan;
}

}  // namespace tilewright::schedule
