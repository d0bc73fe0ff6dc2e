// Fill what a block pads with the constant first, then copy what is inside without a test.
//
//   Before                                          After  sch.decompose_padding(B, i)
//   for i in range(12):                             for i in range(12):
//     with T.block("B"):                              with T.block("B_pad_const"):
//       vi = T.axis.spatial(12, i)                      vi = T.axis.spatial(12, i)
//       B[vi] = T.if_then_else(vi < 10, A[vi], 0.0)     B[vi] = 0.0
//                                                   for i in range(10):
//                                                     with T.block("B"):
//                                                       vi = T.axis.spatial(10, i)
//                                                       B[vi] = A[vi]
//
// All instances of one iteration of the loops around run twice: each fills its elements, then, if it is inside, sets
// them. An axis that is one loop below the new block gets that loop as long as what is inside; others a condition.
//
// Requires  P1 the block is one plain store of T.if_then_else(condition, value, constant), complete
//           P2 the loop is around it, in the same scope, and only the axes depend on loops
//           P3 the condition is a conjunction of bounds, each of one axis by a number, and excludes some elements
//           P4 no other block writes its buffer, none before reads it; those after read only what is complete
//           P5 what stands around the block reads no data
//           P6 parallel loops around stay independent
#include <algorithm>

#include "analysis/isolation.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/inline.h"
#include "schedule/primitives/decompose_padding.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The padding store of a block.
struct Padding {
  const BufferStore* store;
  Expr condition, value, constant;
};

/// The part of each axis's domain that satisfies the condition; null if the condition does not restrict the axis.
struct Inside {
  std::vector<Expr> low, high;  ///< low <= axis < high

  bool bounds(size_t axis) const { return low[axis].defined() || high[axis].defined(); }
};

Result<Padding> find_padding(const Place& block) {
  TW_TRY(assignment, assignment_of(block, "decompose_padding/P1"));
  const Call* call = assignment.store->value.as<Call>();
  if (!call || intrinsic_of(*call) != Intrinsic::k_if_then_else) {
    return refuse("decompose_padding/P1", describe(block) + " stores no T.if_then_else(condition, value, constant)",
                  block, "pad_einsum(), transform_layout(pad_value=...) and scripts of that form leave such blocks");
  }
  Padding padding{assignment.store, call->arg(0), call->arg(1), call->arg(2)};
  if (!const_int(padding.constant) && !const_float(padding.constant)) {
    return refuse("decompose_padding/P1", "what " + describe(block) + " pads with is not a constant",
                  {block.node(), padding.constant}, "the buffer is filled with one value first: pad with a constant");
  }
  return padding;
}

Diagnostic refuse_condition(const Place& block, const Expr& condition, const std::string& why) {
  return refuse("decompose_padding/P3", "the condition of " + describe(block) + " " + why, {block.node(), condition},
                "it is to bound axes by numbers: 2 <= vi and vi < 10");
}

/// Interprets the terms of the condition as bounds of axes.
Result<Inside> find_inside(const Place& block, const Expr& condition, arith::Analyzer& analyzer) {
  const std::vector<Ref<IterVar>>& axes = block.block().iter_vars;
  Inside inside{std::vector<Expr>(axes.size()), std::vector<Expr>(axes.size())};
  auto is_axis = [&](const Ref<Var>& v) {
    return any_of(axes, [&](const Ref<IterVar>& axis) { return axis->var == v; });
  };
  // a < b (+ slack): axis + offset < limit.
  auto take = [&](const Expr& a, const Expr& b, int slack) {
    for (size_t i : indices_of(axes)) {
      const Ref<Var>& axis = axes[i]->var;
      for (bool upper : {true, false}) {
        Expr offset = analyzer.simplify(upper ? a - axis : b - axis);
        const Expr& limit = upper ? b : a;
        if (uses_any_var(offset, is_axis) || uses_any_var(limit, is_axis)) continue;
        Expr bound = cast(axis.dtype(), analyzer.simplify(upper ? limit - offset + slack : limit - offset + 1 - slack));
        Expr& known = upper ? inside.high[i] : inside.low[i];
        known = !known.defined() ? bound : analyzer.simplify(upper ? min(known, bound) : max(known, bound));
        return true;
      }
    }
    return false;
  };
  std::vector<Expr> terms{condition};
  while (!terms.empty()) {
    Expr term = terms.back();
    terms.pop_back();
    bool taken = is_true(term);
    if (const And* n = term.as<And>()) {
      terms.push_back(n->a);
      terms.push_back(n->b);
      taken = true;
    }
    if (const LT* n = term.as<LT>()) taken = take(n->a, n->b, 0);
    if (const LE* n = term.as<LE>()) taken = take(n->a, n->b, 1);
    if (const GT* n = term.as<GT>()) taken = take(n->b, n->a, 0);
    if (const GE* n = term.as<GE>()) taken = take(n->b, n->a, 1);
    if (!taken) return refuse_condition(block, term, "has a term that does not bound one axis by a number");
  }
  bool excludes_some = false;
  for (size_t i : indices_of(axes)) {
    Expr begin = axes[i]->dom->min, end = begin + axes[i]->dom->extent;
    if (inside.low[i].defined() && analyzer.can_prove_less_equal(inside.low[i], begin)) inside.low[i] = {};
    if (inside.high[i].defined() && analyzer.can_prove_less_equal(end, inside.high[i])) inside.high[i] = {};
    if (!inside.bounds(i)) continue;
    excludes_some = true;
    if (!inside.low[i].defined()) inside.low[i] = begin;
    if (!inside.high[i].defined()) inside.high[i] = end;
    bool fits = analyzer.can_prove_less_equal(begin, inside.low[i]) &&
                analyzer.can_prove_less_equal(inside.high[i], end) &&
                analyzer.can_prove_less_equal(inside.low[i], inside.high[i]);
    if (!fits) return refuse_condition(block, condition, "does not provably stay inside of the domains of the axes");
  }
  if (!excludes_some) return refuse_condition(block, condition, "always holds");
  return inside;
}

/// Loads of memory in what stands around the block.
Status check_settled(const Place& block, const std::vector<int>& loops) {
  const Tree& tree = *block.tree;
  const BlockRealize& realize = *tree.realize_at(block.at);
  auto reads = [](const Expr& e) { return has_node<BufferLoad>(e); };
  const bool bounds =
      any_of(loops, [&](int at) { return reads(tree.for_at(at).min) || reads(tree.for_at(at).extent); });
  if (!bounds && !reads(realize.predicate) && none_of(realize.iter_values, reads)) return Ok{};
  return refuse("decompose_padding/P5", "the loops or the condition around " + describe(block) + " depend on data",
                block, "loops over constant or symbolic sizes can be copied");
}

class Decompose {
 public:
  Decompose(const Place& block, const Padding& padding, const Inside& inside, std::vector<int> loops,
            arith::Analyzer& analyzer)
      : block_(block),
        padding_(padding),
        inside_(inside),
        loops_(std::move(loops)),
        analyzer_(analyzer),
        realize_(*block.tree->realize_at(block.at)) {}

  /// The block that stores the constant, under copies of the loops.
  Stmt constant_nest() {
    VarMap axes, loop_vars;
    Block filler;
    for (const Ref<IterVar>& axis : realize_.block->iter_vars) {
      IterVar copy = *axis;
      Ref<Var> v = make<Var>(*axis->var, axis->var.span());
      axes.emplace(axis->var, v);
      copy.var = v;
      filler.iter_vars.push_back(make(std::move(copy)));
    }
    filler.name_hint = realize_.block->name_hint + "_pad_const";
    BufferStore store = *padding_.store;
    for (Expr& index : store.indices) index = substitute(index, axes);
    store.value = padding_.constant;
    filler.body = make(std::move(store));
    for (const Ref<BufferRegion>& write : realize_.block->writes) filler.writes.push_back(substitute(write, axes));
    for (int at : loops_) {
      const Ref<Var>& old = block_.tree->for_at(at).loop_var;
      loop_vars.emplace(old, make<Var>(*old, old.span()));
    }
    std::vector<Expr> values;
    for (const Expr& value : realize_.iter_values) values.push_back(analyzer_.simplify(substitute(value, loop_vars)));
    constant_ = make(std::move(filler), realize_.block.span());
    Stmt nest = make<BlockRealize>(
        {.iter_values = std::move(values), .predicate = substitute(realize_.predicate, loop_vars), .block = constant_});
    for (int at : reversed(loops_)) {
      For copy = block_.tree->for_at(at);
      copy.loop_var = loop_vars.at(copy.loop_var).borrow<Var>();
      copy.min = substitute(copy.min, loop_vars);
      copy.extent = substitute(copy.extent, loop_vars);
      copy.body = std::move(nest);
      nest = make(std::move(copy), block_.tree->stmt(at).span());
    }
    return nest;
  }
  const Ref<Block>& constant_block() const { return constant_; }

  /// Changes the block itself, and the loops that become shorter.
  void change_block(TreeEdit& edit) {
    const std::vector<Ref<IterVar>>& axes = realize_.block->iter_vars;
    BlockRealize realize = realize_;
    Block block = *realize_.block;
    VarMap shifted, bound;
    for (size_t i : indices_of(axes)) {
      bound.emplace(axes[i]->var, realize_.iter_values[i]);
      if (!inside_.bounds(i)) continue;
      DataType dtype = axes[i]->var.dtype();
      Expr extent = analyzer_.simplify(inside_.high[i] - inside_.low[i]);
      IterVar axis = *axes[i];
      axis.dom = range(zero(dtype), extent);
      block.iter_vars[i] = make(std::move(axis));
      shifted.emplace(axes[i]->var, analyzer_.simplify(axes[i]->var + inside_.low[i]));
      int own = own_loop(i);
      if (own != Tree::kNone) {
        shorter_.emplace_back(own, extent);
      } else {
        realize.iter_values[i] = realize_.iter_values[i] - inside_.low[i];
      }
    }
    for (Expr& value : realize.iter_values) value = analyzer_.simplify(value);
    Expr condition = bool_imm(true);
    add_terms(padding_.condition, bound, condition);
    add_plain_terms(realize_.predicate, condition);
    realize.predicate = condition;
    BufferStore store = *padding_.store;
    for (Expr& index : store.indices) index = shift(index, shifted);
    store.value = rewrite(substitute(padding_.value, shifted), [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
      BufferLoad load = *walk.descend(old);
      for (Expr& index : load.indices) index = analyzer_.simplify(index);
      return make(std::move(load), old.span());
    });
    block.body = make(std::move(store), realize_.block->body.span());
    for (Ref<BufferRegion>& write : block.writes) {
      BufferRegion region = *write;
      for (Ref<Range>& r : region.region) r = range(shift(r->min, shifted), r->extent);
      write = make(std::move(region));
    }
    realize.block = with_found_reads(std::move(block), realize_.block.span());
    Stmt after = make(std::move(realize), block_.node().span());
    if (shorter_.empty()) {
      edit.replace(block_.at, after);
      return;
    }
    // The first of the shorter loops contains the block alone.
    size_t top = loops_.size();
    for (const auto& [at, extent] : shorter_) {
      top = std::min<size_t>(top, static_cast<size_t>(std::ranges::find(loops_, at) - loops_.begin()));
    }
    for (size_t i = loops_.size(); i-- > top;) {
      For loop = block_.tree->for_at(loops_[i]);
      for (const auto& [at, extent] : shorter_) {
        if (at == loops_[i]) loop.extent = cast(loop.loop_var.dtype(), extent);
      }
      loop.body = std::move(after);
      after = make(std::move(loop), block_.tree->stmt(loops_[i]).span());
    }
    edit.replace(loops_[top], after);
  }

 private:
  Expr shift(const Expr& e, const VarMap& shifted) { return analyzer_.simplify(substitute(e, shifted)); }

  /// A loop below the new block that is the axis and nothing else, and has nothing but the block below.
  int own_loop(size_t axis) const {
    const Tree& tree = *block_.tree;
    const Ref<IterVar>& iter = realize_.block->iter_vars[axis];
    for (size_t i = loops_.size(); i-- > 0;) {
      const For& loop = tree.for_at(loops_[i]);
      Stmt below = i + 1 < loops_.size() ? tree.stmt(loops_[i + 1]) : Stmt(block_.node());
      if (loop.body != below) return Tree::kNone;
      if (realize_.iter_values[axis] != loop.loop_var) continue;
      if (loop.thread_binding.defined()) return Tree::kNone;  // all loops of an axis have one extent
      for (size_t other : indices_of(realize_.iter_values)) {
        if (other != axis && uses_var(realize_.iter_values[other], loop.loop_var)) return Tree::kNone;
      }
      for (size_t inner = i + 1; inner < loops_.size(); ++inner) {
        const For& deeper = tree.for_at(loops_[inner]);
        if (uses_var(deeper.min, loop.loop_var) || uses_var(deeper.extent, loop.loop_var)) return Tree::kNone;
      }
      bool whole = is_const_int(loop.min, 0) && is_const_int(iter->dom->min, 0) &&
                   !uses_var(realize_.predicate, loop.loop_var) && same_expr(loop.extent, iter->dom->extent);
      return whole ? loops_[i] : Tree::kNone;
    }
    return Tree::kNone;
  }

  bool is_shorter(const Expr& term) const {
    return any_of(shorter_, [&](const auto& loop) { return uses_var(term, block_.tree->for_at(loop.first).loop_var); });
  }
  /// The bounds that no shorter loop keeps, one after another.
  void add_terms(const Expr& term, const VarMap& bound, Expr& condition) {
    if (const And* both = term.as<And>()) {
      add_terms(both->a, bound, condition);
      add_terms(both->b, bound, condition);
      return;
    }
    Expr outside = substitute(term, bound);
    if (is_shorter(outside) || analyzer_.can_prove(outside)) return;
    condition = logical_and(condition, outside);
  }
  static void add_plain_terms(const Expr& term, Expr& condition) {
    if (const And* both = term.as<And>()) {
      add_plain_terms(both->a, condition);
      add_plain_terms(both->b, condition);
      return;
    }
    condition = logical_and(condition, term);
  }

  const Place& block_;
  const Padding& padding_;
  const Inside& inside_;
  std::vector<int> loops_;  ///< loops from the one that the new block is placed before
  arith::Analyzer& analyzer_;
  const BlockRealize& realize_;
  Ref<Block> constant_;
  std::vector<std::pair<int, Expr>> shorter_;
};

}  // namespace

Result<Plan> plan(const State& state, const DecomposePadding& decompose) {
  TW_TRY(block, state.find(decompose.block));
  TW_TRY(loop, state.find(decompose.loop));
  const Tree& tree = *block.tree;
  TW_TRY(padding, find_padding(block));
  std::vector<int> loops = tree.loops_above(block.at);
  auto first = std::ranges::find(loops, loop.at);
  if (block.func != loop.func || first == loops.end() ||
      !analysis::loops_between(tree, tree[loop.at].parent, block.at)) {
    return refuse("decompose_padding/P2", describe(loop) + " is not around " + describe(block),
                  {block.node(), loop.node()}, "take one of get_loops(block)");
  }
  loops.erase(loops.begin(), first);
  TW_RETURN_IF_ERROR(check_settled(block, loops));
  if (auto obstacle = analysis::why_not_isolated(tree, block.at)) {
    return refuse("decompose_padding/P2", *obstacle, "bind an axis to the loop, and use the axis inside");
  }
  auto outside = analysis::analyzer_above(tree, tree[loop.at].parent);  // the loops around the new block, which stay
  TW_TRY(inside, find_inside(block, padding.condition, outside));
  int scope_at = tree[block.at].scope;
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  int self = scope.child(block.block().id.value);
  TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, "decompose_padding/P4"));
  for (int child : scope.consumers(self)) {
    int consumer = scope.position(tree, child);
    if (auto obstacle = analysis::why_not_covered(tree, block.at, consumer, padding.store->buffer)) {
      return refuse("decompose_padding/P4", *obstacle,
                    "take a loop further out, or decompose before the block is moved");
    }
  }
  Decompose change(block, padding, inside, loops, outside);
  TreeEdit edit(tree);
  Stmt constant = change.constant_nest();
  change.change_block(edit);
  edit.insert_before(loop.at, std::move(constant));
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  for (uint64_t identity : {change.constant_block()->id.value, block.block().id.value}) {
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(identity), "decompose_padding/P6"));
  }
  plan.outputs.push_back(Handle::block(block.func, *change.constant_block()));
  return plan;
}

}  // namespace tilewright::schedule
