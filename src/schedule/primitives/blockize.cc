// Make one block of a loop's body, or of neighboring blocks.
//
//   Before                                    After  sch.blockize(i1)
//   for i0, i1 in T.grid(4, 16):              for i0 in range(4):
//     with T.block("B"):                        with T.block("B_o"):
//       vi = T.axis.spatial(64, i0 * 16 + i1)     vi_o = T.axis.spatial(4, i0)
//       B[vi] = A[vi]                             T.reads(A[vi_o * 16:vi_o * 16 + 16])
//                                                 T.writes(B[vi_o * 16:vi_o * 16 + 16])
//                                                 for i1 in range(16):
//                                                   with T.block("B"):
//                                                     vi_i = T.axis.spatial(16, i1)
//                                                     B[vi_o * 16 + vi_i] = A[vi_o * 16 + vi_i]
//
// An axis of the block becomes outer * extent + inner + base. This is its value in each iteration before, so the same
// instances run at the same iterations. An init moves into the new block, as a block over the inner axes; with
// inner_init it stays in the old one.
//
// Requires  P1 the loop contains one block, with only loops between; or the blocks are different neighbors, with only
//              loops around each; no inner loop is bound to the thread axis of an outer one
//           P2 each axis is the sum of a part over outer loops and a part over inner loops
//           P3 each condition on blocks is over the outer loops, over the inner loops, or over whole axes; conditions
//              that move outside read no data that the blocks change
//           P4 an init runs wherever a step of its reduction does; one that moves runs for each element exactly once,
//              before its first step: the inner loops execute the steps of the reduction in order, and each once
//           P5 blocks that are joined, or keep their init, reduce over inner loops only; joined blocks have the same
//              outer conditions
//           P6 no outer loop distributes the reduction over threads or lanes: they combine single updates, not blocks
#include <algorithm>

#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/independence.h"
#include "analysis/may_fail.h"
#include "analysis/reduction_start.h"
#include "analysis/threads.h"
#include "arith/iter_map.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/inits.h"
#include "schedule/primitive.h"
#include "schedule/primitives/blockize.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Axes of a new block, with their bindings.
struct OuterAxes {
  std::vector<Ref<IterVar>> axes;
  std::vector<Expr> values;
};

bool uses_loop(const Expr& e, const arith::IterDomains& loops) {
  return uses_any_var(
      e, [&](const Ref<Var>& v) { return any_of(loops, [&](const auto& loop) { return loop.first == v; }); });
}

/// One block with the loops that will be inside of the new block around it.
class Division {
 public:
  /// `top`: the outermost statement that goes inside.
  Division(const Tree& tree, int block, int top, bool preserve_unit_iters) : tree_(tree), block_(block) {
    for (int at : tree.loops_above(block)) {
      bool inside = tree.contains(top, at);
      if (inside) inner_loops_.push_back(at);
      const For& loop = tree.for_at(at);
      (inside ? inner_ : outer_).emplace_back(loop.loop_var, range(loop.min, loop.extent));
    }
    analyzer_ = analysis::analyzer_above(tree, tree[block].parent);
    if (!preserve_unit_iters) return;
    for (const auto& [v, range] : outer_) {
      if (is_const_int(range->extent, 1)) units_.push_back(v);
    }
  }

  /// Divides axes and condition. `shared`: axes of the new block that another block already needs.
  Status run(OuterAxes& shared) {
    const BlockRealize& realize = *tree_.realize_at(block_);
    for (size_t i : indices_of(realize.iter_values)) {
      TW_RETURN_IF_ERROR(divide(realize.block->iter_vars[i], realize.iter_values[i], i, shared));
    }
    TW_RETURN_IF_ERROR(divide_condition(realize.predicate));
    return check_domains(realize);
  }

  /// Returns the inner block, over the inner axes. It keeps the init only if `keeps_init`.
  Stmt inner_nest(bool keeps_init) {
    const Ref<Block>& old = tree_.realize_at(block_)->block;
    Block inner = *substituted(old);
    inner.iter_vars = inner_axes_;
    if (!keeps_init && inner.init.defined()) {
      inner.init = {};
      // A block without an init also reads the accumulator, which comes first.
      Regions reads = inner.writes;
      for (const Ref<BufferRegion>& read : inner.reads) {
        bool written =
            any_of(inner.writes, [&](const Ref<BufferRegion>& write) { return write->buffer == read->buffer; });
        if (!written) reads.push_back(read);
      }
      inner.reads = std::move(reads);
    }
    Stmt nest = make<BlockRealize>(
        {.iter_values = inner_values_, .predicate = inner_condition_, .block = make(std::move(inner), old.span())},
        tree_.stmt(block_).span());
    for (int loop : reversed(inner_loops_)) nest = with_body(tree_.stmt(loop).borrow<For>(), std::move(nest));
    return nest;
  }

  /// The init as a block over the inner spatial axes.
  Result<Stmt> init_nest() {
    const Ref<Block>& old = tree_.realize_at(block_)->block;
    std::vector<int> copied;
    std::vector<Ref<For>> reducing;
    for (int at : inner_loops_) {
      bool spatial = false;
      for (size_t i : indices_of(inner_axes_)) {
        spatial |= analysis::is_data_parallel(inner_axes_[i]) && uses_var(inner_values_[i], tree_.for_at(at).loop_var);
      }
      if (spatial) {
        copied.push_back(at);
      } else {
        reducing.push_back(tree_.stmt(at).borrow<For>());
      }
    }
    TW_RETURN_IF_ERROR(check_start(copied, reducing));

    Block init;
    VarMap axes, loop_vars;
    std::vector<Expr> values;
    for (size_t i : indices_of(inner_axes_)) {
      if (!analysis::is_data_parallel(inner_axes_[i])) continue;
      IterVar copy = *inner_axes_[i];
      std::string name = copy.var->name_hint;
      copy.var = var(name.substr(0, name.size() - 2) + "_init", copy.var.dtype());
      axes.emplace(inner_axes_[i]->var, copy.var);
      init.iter_vars.push_back(make(std::move(copy)));
      values.push_back(inner_values_[i]);
    }
    for (int at : copied) {
      const Ref<Var> v = tree_.for_at(at).loop_var;
      loop_vars.emplace(v, var(v->name_hint + "_init", v.dtype()));
    }
    Ref<Block> divided = substituted(old);
    init.name_hint = old->name_hint + "_init";
    init.body = substitute(divided->init, axes);
    for (const Ref<BufferRegion>& write : divided->writes) init.writes.push_back(substitute(write, axes));
    init.reads = analysis::block_access_region(make<Block>(Block(init))).reads;
    for (Expr& value : values) value = substitute(value, loop_vars);
    Stmt nest = make<BlockRealize>({.iter_values = std::move(values),
                                    .predicate = substitute(condition_at_start(copied), loop_vars),
                                    .block = make(std::move(init))});
    for (int at : reversed(copied)) {
      For loop = tree_.for_at(at);
      loop.loop_var = loop_vars.at(loop.loop_var).borrow<Var>();
      loop.min = substitute(loop.min, loop_vars);
      loop.extent = substitute(loop.extent, loop_vars);
      loop.annotations = {};
      loop.body = std::move(nest);
      nest = make(std::move(loop));
    }
    return nest;
  }

  const Expr& outer_condition() const { return outer_condition_; }
  const std::vector<Ref<IterVar>>& outer_reduction_axes() const { return outer_reductions_; }
  /// A reduction axis that is elsewhere than at its beginning where the inner loops begin; null if there is none.
  const Ref<IterVar>& late_start() const { return late_start_; }

 private:
  using Regions = std::vector<Ref<BufferRegion>>;
  const Block& block() const { return tree_.block_at(block_); }

  /// Returns the block with its axes in terms of the new ones.
  Ref<Block> substituted(const Ref<Block>& old) {
    Stmt result = rewrite(
        Stmt(substitute(old, axis_values_)),
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr { return simplify_indices(r.descend(load)); },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt { return simplify_indices(r.descend(store)); },
        [&](const Ref<Range>& dim, Rewriter& r) -> NodeRef {
          Ref<Range> after = r.descend(dim);
          return make<Range>({simple(after->min), simple(after->extent)});
        });
    return result.borrow<Block>();
  }
  template <class Access>
  Ref<Access> simplify_indices(const Ref<Access>& access) {
    Access copy = *access;
    bool changed = false;
    for (Expr& index : copy.indices) {
      Expr after = simple(index);
      changed |= after != index;
      index = after;
    }
    return changed ? make(std::move(copy), access.span()) : access;
  }
  /// Simplifies terms with the new axes only; other terms keep their form.
  Expr simple(const Expr& e) {
    if (!e.dtype().is_scalar() || !e.dtype().is_integral()) return e;
    bool mine = uses_any_var(e, [&](const Ref<Var>& v) {
      return any_of(inner_axes_, [&](const auto& axis) { return axis->var == v; }) ||
             any_of(outer_axes_, [&](const auto& axis) { return axis->var == v; });
    });
    return mine || !uses_any_var(e, [](const Ref<Var>&) { return true; }) ? plain_.simplify(e) : e;
  }

  Ref<IterVar> new_axis(const Ref<IterVar>& old, const char* suffix, Ref<Range> dom) {
    return make<IterVar>({.dom = std::move(dom),
                          .var = var(old->var->name_hint + suffix, old->var.dtype()),
                          .iter_type = old->iter_type,
                          .thread_tag = old->thread_tag});
  }

  /// Returns the axis of the new block at this position, which may be the axis of another block with the same value.
  Ref<Var> outer_axis(const Ref<IterVar>& axis, size_t position, Ref<Range> dom, const Expr& value, OuterAxes& shared) {
    if (is_const_int(dom->extent, 1) && position < shared.axes.size() && same(shared, position, axis, dom, value)) {
      outer_axes_.push_back(shared.axes[position]);
      return shared.axes[position]->var;
    }
    for (size_t i = 0; i < shared.axes.size() && !is_const_int(dom->extent, 1); ++i) {
      if (!same(shared, i, axis, dom, value)) continue;
      outer_axes_.push_back(shared.axes[i]);
      return shared.axes[i]->var;
    }
    shared.axes.push_back(new_axis(axis, "_o", std::move(dom)));
    shared.values.push_back(value);
    outer_axes_.push_back(shared.axes.back());
    if (analysis::is_reduction_axis(axis) && !is_const_int(shared.axes.back()->dom->extent, 1)) {
      outer_reductions_.push_back(axis);
    }
    return shared.axes.back()->var;
  }
  bool same(const OuterAxes& shared, size_t i, const Ref<IterVar>& axis, const Ref<Range>& dom, const Expr& value) {
    const IterVar& other = *shared.axes[i];
    return other.iter_type == axis->iter_type && other.var.dtype() == axis->var.dtype() &&
           analyzer_.can_prove_equal(other.dom->min, dom->min) &&
           analyzer_.can_prove_equal(other.dom->extent, dom->extent) &&
           analyzer_.can_prove_equal(shared.values[i], value);
  }

  Ref<Var> inner_axis(const Ref<IterVar>& axis, Ref<Range> dom, Expr value) {
    inner_axes_.push_back(new_axis(axis, "_i", std::move(dom)));
    inner_values_.push_back(std::move(value));
    return inner_axes_.back()->var;
  }

  Status divide(const Ref<IterVar>& axis, const Expr& value, size_t position, OuterAxes& shared) {
    DataType dtype = axis->var.dtype();
    Expr nothing = zero(dtype), unit = one(dtype);
    auto index = [&](const Expr& e) { return cast(dtype, e); };
    bool inner = uses_loop(value, inner_), outer = uses_loop(value, outer_);
    if (!inner && (outer || !is_const_int(value, 0) || !is_const_int(axis->dom->extent, 1))) {
      axis_values_[axis->var] = outer_axis(axis, position, axis->dom, value, shared);
      return Ok{};
    }
    if (!outer) {
      outer_axis(axis, position, range(nothing, unit), nothing, shared);
      Expr only = analyzer_.simplify(value);
      if (!const_int(only)) {
        axis_values_[axis->var] = inner_axis(axis, axis->dom, value);
        return Ok{};
      }
      axis_values_[axis->var] = int_imm(dtype, *const_int(only));
      if (analysis::is_reduction_axis(axis) && !analyzer_.can_prove_equal(only, axis->dom->min)) late_start_ = axis;
      return Ok{};
    }
    arith::IterDomains inputs = outer_;
    append_range(inputs, inner_);
    VarMap starts, inner_starts, outer_starts;
    for (const auto& [v, range] : inputs) starts[v] = range->min;
    for (const auto& [v, range] : inner_) inner_starts[v] = range->min;
    for (const auto& [v, range] : outer_) outer_starts[v] = range->min;
    // Ranges that depend on other loops make the start no constant; then the division has to do without.
    Expr base = analyzer_.simplify(substitute(value, starts));
    if (uses_loop(base, inputs)) base = nothing;
    if (effect_of(value) != Effect::kPure) {
      return refuse("blockize/P2",
                    "the axis '" + axis->var->name_hint + "' of " + describe_block(block()) +
                        " is bound to data, and to loops of both blocks",
                    {tree_.stmt(block_)}, "the outer block, or the inner one, takes all of its loops");
    }
    Expr rest = is_const_int(base, 0) ? value : analyzer_.simplify(value - base);
    std::vector<Ref<Var>> inner_vars;
    for (const auto& input : inner_) inner_vars.push_back(input.first);
    std::vector<std::string> errors;
    auto analyzer = analysis::analyzer_above(tree_, tree_[block_].scope);
    auto divided =
        arith::subspace_divide({rest}, inputs, inner_vars, {}, arith::IterMapLevel::kSurjective, analyzer, &errors);
    if (!divided) {
      return refuse("blockize/P2",
                    "the axis '" + axis->var->name_hint + "' of " + describe_block(block()) + " does not divide: " +
                        (errors.empty() ? "its value mixes outer and inner loops" : errors.front()),
                    {tree_.stmt(block_)}, "it has to be outer * extent + inner, as split leaves it");
    }
    arith::Division& part = divided->indices[0];
    if (!units_.empty() && !is_const_int(part.inner_extent, 0)) {
      // Express the same outer value with the variables of unit loops.
      part.outer = with_units(floordiv(substitute(rest, inner_starts), part.inner_extent), part.outer);
    }
    Ref<Var> out = outer_axis(axis, position, range(nothing, index(part.outer_extent)), index(part.outer), shared);
    Expr whole = is_const_int(part.outer_extent, 1) ? nothing : Expr(out);
    if (!is_const_int(part.inner_extent, 1)) {
      Expr in = inner_axis(axis, range(nothing, index(part.inner_extent)), index(part.inner));
      whole = whole * index(part.inner_extent) + in;
    }
    axis_values_[axis->var] = whole + index(base);
    if (analysis::is_reduction_axis(axis) && !analyzer_.can_prove_equal(base, axis->dom->min)) late_start_ = axis;
    return Ok{};
  }

  /// `e` simplified as if nothing were known of unit loops, if it names one; else `otherwise`.
  Expr with_units(const Expr& e, const Expr& otherwise) {
    arith::Analyzer analyzer;
    for (const auto& [v, range] : outer_) {
      if (!is_const_int(range->extent, 1)) analyzer.bind(v, range);
    }
    Expr result = analyzer.simplify(e);
    bool names = uses_any_var(
        result, [&](const Ref<Var>& v) { return any_of(units_, [&](const Ref<Var>& unit) { return unit == v; }); });
    return names && !analysis::may_divide_by_zero(result, analyzer) ? result : otherwise;
  }

  /// Terms of the outer loops stay outside; the others go inside, where outer loops are known by the outer axes only.
  Status divide_condition(const Expr& predicate) {
    outer_condition_ = inner_condition_ = bool_imm(true);
    // An inner loop of one iteration leaves nothing out by itself.
    const VarMap units = analysis::units_of(inner_);
    const bool runs = inner_loops_run();
    for (const Expr& term : conjuncts(predicate)) {
      // A term that reads data or divides is evaluated late, if the block may not run before a loop or an earlier term
      // inside allows it.
      bool is_late = (!runs || !is_true(inner_condition_)) &&
                     (effect_of(term) != Effect::kPure || analysis::may_divide_by_zero(term, analyzer_));
      if (!uses_loop(term, inner_) && !is_late) {
        outer_condition_ = logical_and(outer_condition_, term);
        continue;
      }
      if (Expr without = analyzer_.simplify(substitute(term, units)); !uses_loop(without, inner_) && !is_late) {
        outer_condition_ = logical_and(outer_condition_, without);
        continue;
      }
      Expr inside = in_axes(term);
      if (uses_loop(inside, outer_)) {
        return refuse(
            "blockize/P3",
            "the condition of " + describe_block(block()) + " mixes outer and inner loops: " + analysis::brief(term),
            {tree_.stmt(block_)}, "split so that nothing is left over");
      }
      inner_condition_ = logical_and(inner_condition_, inside);
    }
    return Ok{};
  }

  /// Checks that axes which stay outside unchanged are within their domains. The condition of the new block contains
  /// only terms of outer loops, and the block also runs if inner loops have no iteration.
  Status check_domains(const BlockRealize& realize) {
    const bool runs = inner_loops_run();
    if (is_true(inner_condition_) && runs) return Ok{};
    auto analyzer = analysis::analyzer_above(tree_, tree_[block_].parent);
    analysis::assume_all(outer_condition_, analyzer);
    for (size_t i : indices_of(realize.iter_values)) {
      const Expr& value = realize.iter_values[i];
      const Ref<IterVar>& axis = realize.block->iter_vars[i];
      if (uses_loop(value, inner_)) continue;
      const Expr end = axis->dom->min + axis->dom->extent;
      if (analyzer.can_prove(ge(value, axis->dom->min)) && analyzer.can_prove(lt(value, end))) continue;
      return refuse("blockize/P3",
                    std::string(runs ? "the condition that keeps" : "what keeps") + " axis '" + axis->var->name_hint +
                        "' of " + describe_block(block()) +
                        " in its domain would be asked inside of the new block alone",
                    {tree_.stmt(block_)}, "split so that nothing is left over, or blockize() before that split");
    }
    return Ok{};
  }

  bool inner_loops_run() const {
    for (int at : inner_loops_) {
      auto analyzer = analysis::analyzer_above(tree_, tree_[at].parent);
      const Expr& extent = tree_.for_at(at).extent;
      if (!analyzer.can_prove(gt(extent, 0))) return false;
    }
    return true;
  }

  /// The term with each whole axis value in it expressed by the outer axes and the inner loops.
  Expr in_axes(const Expr& term) {
    if (!uses_loop(term, outer_)) return term;
    const BlockRealize& realize = *tree_.realize_at(block_);
    VarMap inner;
    for (size_t i : indices_of(inner_axes_)) inner[inner_axes_[i]->var] = inner_values_[i];
    auto replace = [&](const Expr& e) -> Expr {
      for (size_t i : indices_of(realize.iter_values)) {
        const Expr& value = realize.iter_values[i];
        if (!uses_loop(value, outer_) || e.dtype() != value.dtype()) continue;
        if (!analyzer_.can_prove_equal(e, value)) continue;
        return substitute(axis_values_.at(realize.block->iter_vars[i]->var), inner);
      }
      return {};
    };
    auto both = [&]<class T>(const T* n) -> Expr {
      Expr a = uses_loop(n->a, outer_) ? replace(n->a) : n->a;
      Expr b = uses_loop(n->b, outer_) ? replace(n->b) : n->b;
      if (!a.defined() || !b.defined()) return term;
      return binary(term.kind(), a, b);
    };
    if (const LT* n = term.as<LT>()) return both(n);
    if (const LE* n = term.as<LE>()) return both(n);
    if (const GT* n = term.as<GT>()) return both(n);
    if (const GE* n = term.as<GE>()) return both(n);
    return term;
  }

  /// Returns the condition inside at the start of the reductions of the new block, where its init runs.
  Expr condition_at_start(const std::vector<int>& loops) const {
    VarMap begun;
    for (const Ref<IterVar>& axis : outer_axes_) {
      if (analysis::is_reduction_axis(axis)) begun.emplace(axis->var, axis->dom->min);
    }
    Expr condition = substitute(inner_condition_, begun);
    if (condition == inner_condition_) return condition;
    arith::Analyzer analyzer;
    for (int at : loops) analyzer.bind(tree_.for_at(at).loop_var, tree_.for_at(at).min, tree_.for_at(at).extent);
    return analyzer.simplify(condition);
  }

  Status check_start(const std::vector<int>& copied, const std::vector<Ref<For>>& reducing) {
    auto no = [&](const std::string& why, NodeRef where = {}) -> Status {
      return refuse("blockize/P4", "the init of " + describe_block(block()) + " cannot move: " + why,
                    {tree_.stmt(block_), where}, "decompose_reduction() before, or blockize a loop further in");
    };
    const auto& facts = analysis::BlockFacts::of(tree_.block_ref(block_));
    if (facts.role != analysis::BlockRole::kReduction) return no(facts.why);
    int above = inner_loops_.empty() ? tree_[block_].parent : tree_[inner_loops_.front()].parent;
    if (auto obstacle = analysis::why_irregular_reduction(tree_, above, block_, true)) return no(obstacle->why);
    // Threads, and lanes, put together what they reduce where it is one store: not around a block of blocks.
    const BlockRealize& realize = *tree_.realize_at(block_);
    for (const auto& [v, range] : outer_) {
      const For& loop = tree_.for_at(tree_.loop(v));
      if (!analysis::Execution::of(loop).reduces()) continue;
      for (size_t i : indices_of(realize.iter_values)) {
        if (!analysis::is_reduction_axis(realize.block->iter_vars[i]) || !uses_var(realize.iter_values[i], v)) continue;
        return no("the iterations of " + describe_loop(loop) + " share its reduction");
      }
    }
    if (late_start_.defined()) {
      return no("its reduction axis '" + late_start_->var->name_hint + "' does not begin where its loops begin");
    }
    Block inside;
    inside.iter_vars = inner_axes_;
    inside.body = nop();
    BlockRealize pseudo{inner_values_, bool_imm(true), make(std::move(inside))};
    analysis::ReductionStart start = analysis::reduction_start(pseudo, reducing, analyzer_);
    if (!start.condition.defined()) return no(start.why_not);
    const Expr& starts = has_init_without_steps(*realize.block) ? start.predicate : start.condition;
    if (!is_true(starts)) return no("the inner reduction may be empty");
    for (const Ref<For>& loop : reducing) {
      if (uses_var(inner_condition_, loop->loop_var)) {
        return no("its condition skips steps of " + describe_loop(*loop), loop);
      }
      for (int at : copied) {
        const For& other = tree_.for_at(at);
        if (!uses_var(other.min, loop->loop_var) && !uses_var(other.extent, loop->loop_var)) continue;
        return no(describe_loop(other) + " depends on " + describe_loop(*loop) + ", which drives the reduction", loop);
      }
    }
    return Ok{};
  }

  const Tree& tree_;
  int block_;
  arith::Analyzer analyzer_, plain_;
  arith::IterDomains outer_, inner_;
  std::vector<int> inner_loops_;
  std::vector<Ref<Var>> units_;
  VarMap axis_values_;
  std::vector<Ref<IterVar>> outer_axes_, inner_axes_, outer_reductions_;
  std::vector<Expr> inner_values_;
  Expr outer_condition_, inner_condition_;
  Ref<IterVar> late_start_;
};

/// The block around, with regions that follow from its body.
Ref<Block> around(std::string name, const OuterAxes& outer, Stmt init, Stmt body) {
  Block block;
  block.name_hint = std::move(name);
  block.iter_vars = outer.axes;
  block.init = std::move(init);
  block.body = std::move(body);
  analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(block)));
  for (const auto& read : access.reads) block.reads.push_back(analysis::known_at_start(read, access.writes));
  for (const auto& write : access.writes) block.writes.push_back(analysis::known_at_start(write, access.writes));
  return make(std::move(block));
}

/// Checks the ranges of loops that go inside: they must not depend on loops outside, and thread axes must differ.
Status check_ranges(const Tree& tree, int top, const std::vector<int>& loops) {
  if (auto obstacle = analysis::why_no_block_around(tree, top))
    return refuse("blockize/P1", *obstacle, "blockize the outer one of the two, or before the inner one is bound");
  for (int at : loops) {
    const For& loop = tree.for_at(at);
    for (int other : tree.loops_above(top)) {
      if (tree.contains(top, other)) continue;
      const Ref<Var> outer = tree.for_at(other).loop_var;
      if (!uses_var(loop.min, outer) && !uses_var(loop.extent, outer)) continue;
      return refuse("blockize/P2",
                    "the range of " + describe_loop(loop) + " depends on " + describe_loop(tree.for_at(other)) +
                        ", which stays outside of the new block",
                    {tree.stmt(at), tree.stmt(other)}, "take the outer loop into the block too");
    }
  }
  return Ok{};
}

bool only_loops_between(const Tree& tree, int top, int block) {
  for (int at = block; at != top; at = tree[at].parent) {
    if (!tree[tree[at].parent].is_loop) return false;
  }
  return true;
}

std::vector<int> loops_inside(const Tree& tree, int top, int block) {
  std::vector<int> loops = tree.loops_above(block);
  std::erase_if(loops, [&](int at) { return !tree.contains(top, at); });
  return loops;
}

/// A condition that moves outside is evaluated once, so it must not read buffers that one of the blocks writes.
Status check_data(const Tree& tree, const std::vector<int>& blocks, const Expr& condition, const OuterAxes& outer) {
  std::vector<Expr> asked = outer.values;
  asked.push_back(condition);
  for (const Expr& value : asked) {
    if (effect_of(value) == Effect::kPure) continue;
    Ref<Buffer> changed;
    int writer = Tree::kNone;
    visit(value, [&](const Ref<BufferLoad>& load) {
      for (int block : blocks) {
        for (const Ref<BufferRegion>& write : tree.block_at(block).writes) {
          if (!tree.same_memory(write->buffer, load->buffer)) continue;
          changed = load->buffer;
          writer = block;
        }
      }
    });
    if (!changed.defined()) continue;
    return refuse("blockize/P3",
                  describe_block(tree.block_at(writer)) + " writes '" + changed->name +
                      "', which decides where or whether its later instances run",
                  {tree.stmt(writer)}, "the new block would ask for that once, ahead of all of them");
  }
  return Ok{};
}

/// An init that stays inside runs once: the outer loops do not take steps of its reduction.
Status check_kept_init(const Tree& tree, int block, const Division& division, const char* what) {
  const Block& inner = tree.block_at(block);
  if (!division.outer_reduction_axes().empty()) {
    return refuse("blockize/P5",
                  describe_block(inner) + " reduces over the loops outside, along '" +
                      division.outer_reduction_axes()[0]->var->name_hint + "'",
                  {tree.stmt(block)}, what);
  }
  if (inner.init.defined() && division.late_start().defined()) {
    return refuse("blockize/P4",
                  "the reduction axis '" + division.late_start()->var->name_hint + "' of " + describe_block(inner) +
                      " does not begin where its loops begin, and the axes inside would",
                  {tree.stmt(block)}, "bind the axis so that it begins with its loops");
  }
  return Ok{};
}

/// Checks that no loop around the block that is made spreads its reduction over threads or lanes.
Status check_spread(const Plan& plan, const Block& made) {
  const Tree& after = Tree::of(plan.root);
  return recheck_execution(after, after.block(made.id.value), "blockize/P6", analysis::Conflict::kReduction);
}

Result<Plan> blockize_loop(const State& state, LoopRV rv, bool preserve_unit_iters, bool inner_init) {
  TW_TRY(place, state.find(rv));
  const Tree& tree = *place.tree;
  std::vector<int> blocks = tree.child_blocks(place.at);
  if (blocks.size() != 1) {
    return refuse("blockize/P1", std::to_string(blocks.size()) + " blocks stand below " + describe(place) + ", not one",
                  place, "blockize([block, block]) joins blocks");
  }
  int block = blocks[0];
  if (!only_loops_between(tree, place.at, block)) {
    return refuse(
        "blockize/P1",
        "something else than loops stands between " + describe(place) + " and " + describe_block(tree.block_at(block)),
        {place.node(), tree.stmt(block)},
        "the loops of the new block contain loops and one block only; blockize an inner loop");
  }
  TW_RETURN_IF_ERROR(require_inits_run({place.func, place.tree, block}, "blockize/P4"));
  TW_RETURN_IF_ERROR(check_ranges(tree, place.at, loops_inside(tree, place.at, block)));
  OuterAxes outer;
  Division division(tree, block, place.at, preserve_unit_iters);
  TW_RETURN_IF_ERROR(division.run(outer));
  TW_RETURN_IF_ERROR(check_data(tree, {block}, division.outer_condition(), outer));
  Stmt init;
  if (tree.block_at(block).init.defined() && inner_init) {
    const char* hint = "omit inner_init: the init becomes a block of its own; or blockize an outer loop";
    TW_RETURN_IF_ERROR(check_kept_init(tree, block, division, hint));
  } else if (tree.block_at(block).init.defined()) {
    TW_TRY(moved, division.init_nest());
    init = moved;
  }
  Ref<Block> outer_block = around(tree.block_at(block).name_hint + "_o", outer, init, division.inner_nest(inner_init));
  for (const Ref<IterVar>& axis : outer.axes) {
    // The block's own axis may have one value only, of which a condition knows, and be no part of the indices.
    bool starts = init.defined() && !analysis::is_reduction_axis(axis) && !is_const_int(axis->dom->extent, 1);
    bool selects = false;
    visit(init, [&](const Ref<BufferStore>& store) {
      for (const Expr& index : store->indices) selects |= uses_var(index, axis->var);
    });
    if (!starts || selects) continue;
    return refuse("blockize/P4",
                  "the init of " + describe_block(tree.block_at(block)) + " cannot move: the outer loops run over '" +
                      axis->var->name_hint + "', which selects nothing of what is written",
                  {place.node(), tree.stmt(block)}, "decompose_reduction() before, or blockize a loop further in");
  }
  TreeEdit edit(tree);
  edit.replace(place.at, make<BlockRealize>({outer.values, division.outer_condition(), outer_block}));
  Plan plan = give_loops(place.func, edit.finish(), {});
  TW_RETURN_IF_ERROR(check_spread(plan, *outer_block));
  plan.outputs.push_back(Handle::block(place.func, *outer_block));
  return plan;
}

/// The blocks' nests, one after the other in one sequence.
Result<std::vector<int>> find_neighbors(const std::vector<Place>& blocks) {
  const Tree& tree = *blocks[0].tree;
  auto no = [&](const std::string& why, const Place& place) {
    return refuse("blockize/P1", why, {place.node(), blocks[0].node()},
                  "the blocks have to be neighbors, each under loops of its own");
  };
  std::vector<int> positions;
  for (const Place& place : blocks) {
    if (place.func != blocks[0].func || tree[place.at].scope != tree[blocks[0].at].scope) {
      return no(describe(place) + " and " + describe(blocks[0]) + " are in different scopes", place);
    }
    if (is_contained(positions, place.at)) {
      return no(describe(place) + " is named twice", place);
    }
    positions.push_back(place.at);
  }
  std::vector<int> nests;
  int lca = tree.common_ancestor(positions);
  for (const Place& place : blocks) {
    int nest = positions.size() == 1 ? place.at : tree.child_towards(lca, place.at);
    std::vector<int> inside = tree[nest].is_block ? std::vector{nest} : tree.child_blocks(nest);
    if (inside != std::vector{place.at} || !only_loops_between(tree, nest, place.at)) {
      return no("something else than loops and " + describe(place) + " stands there", place);
    }
    nests.push_back(nest);
  }
  std::ranges::sort(nests);
  for (size_t i = 1; i < nests.size(); ++i) {
    if (tree[nests[i - 1]].end != nests[i]) {
      return no("something stands between the blocks", blocks[i]);
    }
  }
  return nests;
}

Result<Plan> blockize_blocks(const State& state, const std::vector<BlockRV>& named, bool preserve_unit_iters) {
  std::vector<Place> blocks;
  for (BlockRV rv : named) {
    TW_TRY(place, state.find(rv));
    blocks.push_back(place);
    if ((*place.tree)[place.at].parent == Tree::kNone) {
      return refuse("blockize/P1", "no block can stand around the root block: it is the body of the function", place,
                    "name blocks inside of it");
    }
  }
  if (blocks.empty()) {
    return refuse("blockize/P1", "no block is given", {}, "pass a loop, or a list of at least one block");
  }
  TW_TRY(nests, find_neighbors(blocks));
  const Tree& tree = *blocks[0].tree;
  OuterAxes outer;
  Expr condition;
  std::string name = "outer_";
  std::vector<Stmt> parts;
  std::vector<int> inside;
  for (int nest : nests) {
    int block = tree[nest].is_block ? nest : tree.child_blocks(nest)[0];
    inside.push_back(block);
    TW_RETURN_IF_ERROR(require_inits_run({blocks[0].func, blocks[0].tree, block}, "blockize/P4"));
    TW_RETURN_IF_ERROR(check_ranges(tree, nest, loops_inside(tree, nest, block)));
    Division division(tree, block, nest, preserve_unit_iters);
    TW_RETURN_IF_ERROR(division.run(outer));
    const Block& inner = tree.block_at(block);
    TW_RETURN_IF_ERROR(check_kept_init(tree, block, division, "only what reduces inside can be joined with others"));
    if (condition.defined() && !structural_equal(condition, division.outer_condition())) {
      return refuse("blockize/P5", describe_block(inner) + " runs on another condition than the blocks before it",
                    {tree.stmt(block)}, "split their loops alike before, or join them while no loop has a remainder");
    }
    condition = division.outer_condition();
    name += inner.name_hint + "_";
    parts.push_back(division.inner_nest(true));
  }
  TW_RETURN_IF_ERROR(check_data(tree, inside, condition, outer));
  Ref<Block> made = around(std::move(name), outer, {}, seq(std::move(parts)));
  TreeEdit edit(tree);
  edit.replace(nests[0], make<BlockRealize>({outer.values, condition, made}));
  for (size_t i = 1; i < nests.size(); ++i) edit.remove(nests[i]);
  Plan plan = give_loops(blocks[0].func, edit.finish(), {});
  TW_RETURN_IF_ERROR(check_spread(plan, *made));
  plan.outputs.push_back(Handle::block(blocks[0].func, *made));
  return plan;
}

}  // namespace

Result<Plan> plan(const State& state, const Blockize& blockize) {
  if (const LoopRV* loop = std::get_if<LoopRV>(&blockize.target.either)) {
    return blockize_loop(state, *loop, blockize.preserve_unit_iters, blockize.inner_init);
  }
  return blockize_blocks(state, std::get<std::vector<BlockRV>>(blockize.target.either), blockize.preserve_unit_iters);
}

}  // namespace tilewright::schedule
