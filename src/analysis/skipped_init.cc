// Theorem. For an iteration p, let s(p) be the iteration in which every loop that drives only reduction axes is at
// its first iteration, and all other loops are as in p. s(p) computes the same element as p, and is not executed after
// p, because the outermost loop in which they differ is at its first iteration in s(p). Suppose that whenever p is
// executed, s(p) is inside the bounds of all loops, fulfills all conditions, and has all reduction axes at the minima
// of their domains. Then the init of each element is executed before its other steps.
//
// If all bounds are constant and there are few iterations, these are enumerated instead. Loops that drive both
// reduction axes and other axes, such as those of fuse(), are split into digits: by an iteration map (has_all_steps),
// or each loop separately, after which the same proof is tried again (begins_by_digits).
#include "analysis/skipped_init.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "analysis/axis_condition.h"
#include "analysis/block_facts.h"
#include "analysis/brief.h"
#include "analysis/changes.h"
#include "analysis/cover.h"
#include "analysis/loop_digits.h"
#include "analysis/witness.h"
#include "arith/analyzer.h"
#include "arith/buffer_values.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// The most iterations that are enumerated for one block.
constexpr int64_t kTries = 1 << 14;
/// The most terms of a condition of which every subset is tried.
constexpr size_t kMostTerms = 6;

using Loop = NestLoop;

/// Binding and domain of an axis, in terms of loops.
struct Axis {
  Expr value, min, extent;
};

/// A reduction block, and the loops around it.
struct Sum {
  const BlockRealize* realize;
  std::vector<Axis> steps, elements;  ///< its reduction axes; its data-parallel axes
  std::vector<Ref<Var>> drivers;      ///< loops that reduction axes, or the bounds of such loops, depend on
  size_t outside = 0;                 ///< number of loops around the outermost driver

  bool is_driven_by(const Ref<Var>& v) const { return is_contained(drivers, v); }
  bool is_selected_by(const Ref<Var>& v) const { return uses(elements, v); }
  static bool uses(const std::vector<Axis>& axes, const Ref<Var>& v) {
    return any_of(axes, [&](const Axis& axis) { return uses_var(axis.value, v); });
  }
};

void add_terms(const Expr& condition, std::vector<Expr>& terms) {
  if (const And* both = condition.as<And>()) {
    add_terms(both->a, terms);
    add_terms(both->b, terms);
  } else if (!is_true(condition)) {
    terms.push_back(condition);
  }
}

/// Assumes that a loop runs, so that its extent is positive. If the extent is a product with a factor that is provably
/// not negative, both factors are positive; otherwise, both could be negative.
void assume_runs(const Expr& extent, arith::Analyzer& analyzer) {
  if (const_int(extent)) return;
  if (const Mul* product = extent.as<Mul>()) {
    auto is_natural = [&](const Expr& e) { return analyzer.can_prove(ge(e, 0)); };
    if (!is_natural(product->a) && !is_natural(product->b)) return;
    assume_runs(product->a, analyzer);
    assume_runs(product->b, analyzer);
    return;
  }
  analyzer.assume(ge(extent, 1));
  const Cast* cast = extent.as<Cast>();
  if (cast && cast->value.dtype().is_int()) assume_runs(cast->value, analyzer);
}

/// Assumes that symbolic sizes of the block's buffers are not negative.
void assume_shapes(const Block& block, arith::Analyzer& analyzer) {
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const Ref<BufferRegion>& region : *regions) {
      for (const Expr& extent : region->buffer->shape) {
        if (extent.is<Var>()) analyzer.assume(ge(extent, 0));
      }
    }
  }
}

/// Calls `accept` with the conjunction of a subset of the terms, and with the remaining terms, until it returns true.
/// Large subsets come first.
template <class F>
bool accepts_some(const std::vector<Expr>& terms, F&& accept) {
  const uint32_t all = (1U << std::min(terms.size(), kMostTerms)) - 1U;
  for (uint32_t used = all + 1; used-- > 0;) {
    Expr condition = bool_imm(true);
    std::vector<Expr> left;
    for (size_t i : indices_of(terms)) {
      if (i < kMostTerms && (used >> i & 1U)) {
        condition = logical_and(condition, terms[i]);
      } else {
        left.push_back(terms[i]);
      }
    }
    if (accept(condition, left)) return true;
  }
  return false;
}

/// The axes of a reduction as digits of the loops that drive them. Reduction axes come first.
struct Digits {
  arith::Analyzer analyzer;  ///< knows the enclosing loops and conditions
  arith::IterDomains inputs;
  std::vector<Axis> axes;
  arith::IterMapResult map;

  bool moves(const Expr& e) const {
    return any_of(inputs, [&](const auto& input) { return uses_var(e, input.first); });
  }

  /// Detects an iteration map under the condition: each point of a box is reached exactly once.
  bool find(const Expr& condition) {
    std::vector<Expr> values;
    for (const Axis& axis : axes) values.push_back(axis.value);
    map = arith::detect_iter_map(values, inputs, condition, arith::IterMapLevel::kBijective, analyzer);
    return map.ok();
  }

  /// The iterations that compute one element differ only in the digits of the first `steps` axes, the reduction axes.
  /// Returns whether all of these digits are 0, and the axes at their minima, in the first of these iterations.
  bool begin_with_loops(size_t steps) {
    for (size_t i : indices_of(map.indices)) {
      const arith::IterSumExpr& sum = map.indices[i];
      if (i < steps && !analyzer.can_prove_equal(sum.base, axes[i].min)) return false;
      for (const arith::IterSplitExpr& digit : sum.args) {
        if (i < steps && !analyzer.can_prove(gt(digit.scale, 0))) return false;
        if (!is_whole(digit) && !grows(*digit.source)) return false;
      }
    }
    return true;
  }

  /// Whether the conditions hold in the first step of an element whenever they hold in one of its steps. They are
  /// expressed in terms of the axes; `known` replaces loads in them by variables.
  template <class Known>
  bool hold_at_start(const std::vector<Expr>& terms, size_t steps, Known&& known) {
    if (terms.empty()) return true;
    VarMap first, loops = units_of(inputs);
    std::vector<Expr> outputs;
    for (size_t i : indices_of(axes)) {
      Ref<Var> output = var("axis", axes[i].value.dtype());
      analyzer.bind(output, axes[i].min, axes[i].extent);
      if (i < steps) first[output] = axes[i].min;
      outputs.push_back(output);
    }
    for (const auto& [loop_var, value] : arith::inverse_affine_iter_map(map.indices, outputs, analyzer)) {
      loops.insert_or_assign(loop_var, value);
    }
    std::vector<Expr> asked;
    for (const Expr& term : terms) {
      asked.push_back(analyzer.simplify(substitute(in_axes(term, outputs), loops)));
      if (moves(asked.back())) return false;
    }
    for (const Expr& term : asked) analyzer.assume(known(term));
    return all_of(asked, [&](const Expr& term) { return analyzer.can_prove(known(substitute(term, first))); });
  }

 private:
  /// Replaces occurrences of axis bindings in the condition by the axes.
  Expr in_axes(const Expr& term, const std::vector<Expr>& outputs) const {
    auto name = [&](const auto& value, Rewriter& walk) -> Expr {
      for (size_t i : indices_of(axes)) {
        if (same_expr(axes[i].value, value)) return outputs[i];
      }
      return walk.descend(value);
    };
    return rewrite(term, on<FloorDiv, FloorMod, Add, Sub>(name));
  }

  bool is_whole(const arith::IterSplitExpr& digit) {
    return is_const_int(digit.lower_factor, 1) && analyzer.can_prove_equal(digit.extent, digit.source->extent);
  }

  /// Whether the sum increases from each iteration to the next: its terms are digits of loops, outermost first.
  bool grows(const arith::IterMark& mark) {
    size_t depth = 0;
    Expr digit;
    return grows(mark, depth, digit);
  }
  /// `depth`, `digit`: of the last term.
  bool grows(const arith::IterMark& sum, size_t& depth, Expr& digit) {
    if (!sum.sum) return true;
    for (const arith::IterSplitExpr& term : sum.sum->args) {
      if (term.source->sum) {
        if (!is_whole(term) || !grows(*term.source, depth, digit)) return false;
        continue;
      }
      auto is_source = [&](const auto& input) { return input.first == term.source->var; };
      const auto at = static_cast<size_t>(find_if(inputs, is_source) - inputs.begin());
      const bool goes_on = digit.defined() && at == depth;
      if (goes_on ? !analyzer.can_prove(lt(term.lower_factor, digit)) : digit.defined() && at < depth) return false;
      depth = at;
      digit = term.lower_factor;
    }
    return true;
  }
};

/// Whether the element that the block writes may depend on the variable of a loop around it. The regions that the block
/// declares may be larger than what it writes, and depend on it anyway.
bool may_name_element(const Block& block, const Ref<Var>& loop_var) {
  bool found = false;
  auto uses = [&](const auto& values) {
    found = found || any_of(values, [&](const NodeRef& value) { return uses_var(value, loop_var); });
  };
  visit(
      block.body, [&](const Ref<BufferStore>& store) { uses(store->indices); },
      [&](const Ref<BlockRealize>& realize) { uses(realize->iter_values); },
      [&](const Ref<LetStmt>& let) { uses(std::array{let->value}); },
      [&](const Ref<For>& loop) { uses(std::array{loop->min}); },
      [&](const Ref<Evaluate>& call) { uses(std::array{call->value}); });
  return found;
}

class SkippedInitFinder {
 public:
  SkippedInitFinder(const Stmt& body, const Block* only) : only_(only), is_outside_(only != nullptr), names_(body) {}

  void walk(const Stmt& stmt) {
    if (found || !stmt.defined()) return;
    if (const For* loop = stmt.as<For>()) {
      nest_.loops.push_back({loop->loop_var, substitute(loop->min, nest_.values),
                             substitute(loop->extent, nest_.values), loop->kind == ForKind::kThreadBinding});
      stmts_.push_back(stmt);
      walk(loop->body);
      stmts_.pop_back();
      nest_.loops.pop_back();
    } else if (const IfThenElse* branch = stmt.as<IfThenElse>()) {
      under(branch->condition, [&] { walk(branch->then_case); });
      if (branch->else_case.defined()) under(logical_not(branch->condition), [&] { walk(branch->else_case); });
    } else if (const LetStmt* let = stmt.as<LetStmt>()) {
      if (!let->var.dtype().is_handle()) nest_.values[let->var] = substitute(let->value, nest_.values);
      walk(let->body);
    } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
      for (size_t i : indices_of(realize->iter_values)) {
        nest_.values[realize->block->iter_vars[i]->var] = substitute(realize->iter_values[i], nest_.values);
      }
      const bool outside = is_outside_;
      is_outside_ &= &*realize->block != only_;
      const size_t declared = declared_.size();
      for (BufferDomain& domain : buffer_domains(*realize->block)) declared_.push_back(std::move(domain));
      under(realize->predicate, [&] {
        if (!is_outside_) check(*realize);
        if (realize->block->init.defined()) walk(realize->block->init);
        walk(realize->block->body);
      });
      declared_.resize(declared);
      is_outside_ = outside;
    } else {
      for_each_child(stmt, [&](const NodeRef& child, Role) {
        if (child.sort() == Sort::kStmt) walk(Stmt(child));
      });
    }
  }

  std::optional<SkippedInit> found;

 private:
  template <class F>
  void under(const Expr& condition, F&& work) {
    const size_t before = nest_.terms.size();
    add_terms(substitute(condition, nest_.values), nest_.terms);
    inside_.resize(nest_.terms.size(), nest_.loops.size());
    work();
    nest_.terms.resize(before);
    inside_.resize(before);
  }

  void check(const BlockRealize& realize) {
    const Block& block = *realize.block;
    if (!block.init.defined() || is_nop(block.init)) return;
    Sum sum = reduction(realize);
    auto has_one_step = [](const Axis& axis) { return is_const_int(axis.extent, 1); };
    if (all_of(sum.steps, has_one_step)) return;  // then each run of the block begins with its init
    std::optional<SkippedInit> obstacle = why_changed(sum);
    if (!obstacle) obstacle = why_not_first(sum);
    if (obstacle && !never_runs(block)) found = std::move(obstacle);
  }

  /// Tries all proofs.
  std::optional<SkippedInit> why_not_first(const Sum& sum) {
    std::optional<SkippedInit> obstacle = why_unproved(sum);
    if (!obstacle) return std::nullopt;
    const Trial trial = tried(sum);
    if (trial.order == Order::kInitFirst) return std::nullopt;
    if (trial.order == Order::kUnknown && (has_all_steps(sum) || begins_by_digits(sum))) return std::nullopt;
    return trial.order == Order::kInitLate ? out_of_order(sum, trial) : std::move(obstacle);
  }

  /// Whether a loop bound or condition reads data that the reduction loops change, so that its value in the first step
  /// may differ from that in other steps.
  std::optional<SkippedInit> why_changed(const Sum& sum) const {
    if (sum.outside == stmts_.size()) return std::nullopt;
    const Stmt& changing = stmts_[sum.outside];
    auto changes = [&](const Expr& e) { return may_change(names_, changing, e); };
    for (size_t i = sum.outside + 1; i < nest_.loops.size(); ++i) {
      const Loop& loop = nest_.loops[i];
      if (!changes(loop.min) && !changes(loop.extent)) continue;
      return skipped(sum,
                     "the range of loop '" + loop.var->name_hint + "' reads what steps of the loops around it change");
    }
    for (size_t i : indices_of(nest_.terms)) {
      if (inside_[i] <= sum.outside || !changes(nest_.terms[i])) continue;
      return skipped(sum, "the condition " + brief(nest_.terms[i]) + " reads what steps of the loops around it change");
    }
    return std::nullopt;
  }

  /// Whether the block is proved never to run: a loop is empty, or a condition excludes all iterations. Splitting a
  /// loop over range(0) gives such a condition, k < 0.
  bool never_runs(const Block& block) {
    arith::Analyzer analyzer;
    if (any_of(nest_.loops, [&](const Loop& loop) { return analyzer.can_prove(le(loop.extent, 0)); })) return true;
    for (const Loop& loop : nest_.loops) analyzer.bind(loop.var, known(loop.min, block), known(loop.extent, block));
    return any_of(nest_.terms, [&](const Expr& term) { return analyzer.can_prove(logical_not(known(term, block))); });
  }

  Sum reduction(const BlockRealize& realize) const {
    const Block& block = *realize.block;
    Sum sum{&realize, {}, {}, {}};
    for (size_t i : indices_of(realize.iter_values)) {
      auto& axes = is_reduction_axis(block.iter_vars[i]) ? sum.steps : sum.elements;
      const Range& domain = *block.iter_vars[i]->dom;
      axes.push_back({nest_.values.at(block.iter_vars[i]->var), substitute(domain.min, nest_.values),
                      substitute(domain.extent, nest_.values)});
    }
    for (const Loop& loop : nest_.loops) {  // the block may index elements by loop variables, without an axis
      auto is_index = [&](const Ref<Range>& r) { return uses_var(r->min, loop.var); };
      for (const Ref<BufferRegion>& write : block.writes) {
        auto index = find_if(write->region, is_index);
        if (index == write->region.end()) continue;
        if (Sum::uses(sum.steps, loop.var)) {  // some digits of the loop may select the element
          if (!may_name_element(block, loop.var)) break;
          const Expr& size = write->buffer->shape[index - write->region.begin()];
          sum.elements.push_back({substitute((*index)->min, nest_.values), zero(size.dtype()), size});
        } else {
          sum.elements.push_back({loop.var, loop.min, loop.extent});
        }
        break;
      }
    }
    sum.outside = nest_.loops.size();
    for (size_t i = nest_.loops.size(); i-- > 0;) {
      const Ref<Var>& v = nest_.loops[i].var;
      bool bounds = std::any_of(
          nest_.loops.begin() + static_cast<std::ptrdiff_t>(i) + 1, nest_.loops.end(),
          [&](const Loop& in) { return sum.is_driven_by(in.var) && (uses_var(in.min, v) || uses_var(in.extent, v)); });
      bool follows = Sum::uses(sum.steps, v);
      if (bounds || follows) sum.drivers.push_back(v);
      if (follows || (bounds && !sum.is_selected_by(v))) sum.outside = i;
    }
    return sum;
  }

  /// Replaces loads by variables; equal loads get the same variable, unless the block writes the buffer.
  Expr known(const Expr& e, const Block& block) {
    return rewrite(e, [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
      bool changes = any_of(block.writes,
                            [&](const Ref<BufferRegion>& write) { return write->buffer->data == load->buffer->data; });
      for (const auto& [before, number] : read_) {
        if (!changes && same_expr(before, load)) return number;
      }
      Ref<Var> number = var("read", load.dtype());
      read_.emplace_back(load, number);
      return number;
    });
  }

  /// Assumes the loop bounds and conditions of an executed iteration.
  void assume_step(const Sum& sum, arith::Analyzer& analyzer) {
    const Block& block = *sum.realize->block;
    assume_shapes(block, analyzer);
    for (const Loop& loop : nest_.loops) {
      const Expr min = known(loop.min, block), extent = known(loop.extent, block);
      analyzer.bind(loop.var, min, extent);
      if (!const_int(extent)) analyzer.assume(gt(extent, 0));
      assume_runs(extent, analyzer);
    }
    for (const Expr& term : nest_.terms) analyzer.assume(known(term, block));
  }

  /// Applies the theorem at the top of this file. Returns why its assumptions are not proved; nothing if they are.
  std::optional<SkippedInit> why_unproved(const Sum& sum) {
    const Block& block = *sum.realize->block;
    arith::Analyzer analyzer;
    VarMap first;
    assume_step(sum, analyzer);
    for (const Loop& loop : nest_.loops) {
      if (sum.is_driven_by(loop.var) && !sum.is_selected_by(loop.var)) first[loop.var] = substitute(loop.min, first);
    }
    auto proved = [&](const Expr& e) { return analyzer.can_prove(known(e, block)); };
    for (const Axis& step : sum.steps) {
      if (proved(eq(substitute(step.value, first), substitute(step.min, first)))) continue;
      return skipped(
          sum,
          "no step is proved to be its first one: an axis of the reduction is bound to " + brief(step.value) +
              ", which need not be at the beginning " + brief(step.min) +
              " of its domain in the first iteration of the loops",
          "let the domain begin where the loop does, T.axis.reduce((i, n), r) in a loop over range(i, n), and "
          "the axis ascend with the loop: vr = T.axis.reduce(n, r) and A[n - 1 - vr] instead of n - 1 - r");
    }
    for (const Loop& loop : nest_.loops) {
      const Expr min = substitute(loop.min, first), extent = substitute(loop.extent, first);
      if (same_expr(min, loop.min) && same_expr(extent, loop.extent)) continue;
      bool runs = first.count(loop.var) ? proved(gt(extent, 0))
                                        : proved(ge(loop.var, min)) && proved(lt(loop.var, min + extent));
      if (!runs) return skipped(sum, "loop '" + loop.var->name_hint + "' need not run in its first step");
    }
    for (const Expr& term : nest_.terms) {
      const Expr at_start = substitute(term, first);
      if (same_expr(at_start, term) || proved(at_start)) continue;
      return skipped(sum, "the condition " + brief(term) + " may skip its first step and keep others");
    }
    return std::nullopt;
  }

  static SkippedInit skipped(const Sum& sum, std::string why, std::string hint = "") {
    if (hint.empty()) {
      hint =
          "let all steps run and choose what they add, T.if_then_else(r >= i, A[i, r], 0.0), or begin the loop and its "
          "axis at the first step: T.axis.reduce((i, n), r) in a loop over range(i, n)";
    }
    return {sum.realize->block,
            "the init of block '" + sum.realize->block->name_hint +
                "' may be skipped, and what it adds up would begin with what the memory held before",
            std::move(why), std::move(hint)};
  }

  /// Order in which the enumeration finds the steps of an element.
  enum class Order : uint8_t { kUnknown, kInitFirst, kInitSkipped, kInitLate };
  struct Trial {
    Order order = Order::kUnknown;
    std::string at;  ///< the iteration in which the init runs too late: "r = 7"
  };

  static SkippedInit out_of_order(const Sum& sum, const Trial& trial) {
    return {sum.realize->block,
            "the init of block '" + sum.realize->block->name_hint +
                "' does not run first, and what earlier steps added up would be lost",
            "its axes are at the beginnings of their domains at " + trial.at +
                ", and other steps of the same element run before that",
            "let the axis ascend with its loop, and reverse what is read: vr = T.axis.reduce(n, r) with A[n - 1 - vr] "
            "instead of T.axis.reduce(n, n - 1 - r) with A[vr]"};
  }

  /// Enumerates the iterations of the relevant loops, if there are few.
  Trial tried(const Sum& sum) const {
    std::vector<size_t> asked;
    for (size_t i = nest_.loops.size(); i-- > 0;) {
      const Ref<Var>& v = nest_.loops[i].var;
      bool has_say = sum.is_driven_by(v) || sum.is_selected_by(v) ||
                     any_of(nest_.terms, [&](const Expr& term) { return uses_var(term, v); }) ||
                     any_of(sum.steps, [&](const Axis& step) { return uses_var(step.min, v); }) ||
                     any_of(asked, [&](size_t inner) {
                       return uses_var(nest_.loops[inner].min, v) || uses_var(nest_.loops[inner].extent, v);
                     });
      if (has_say) asked.insert(asked.begin(), i);
    }
    Trier trier{*this, sum, asked, {}, {}, kTries};
    if (!trier.run(0, Point())) return {};
    if (trier.result.order != Order::kUnknown) return trier.result;
    const bool begun = all_of(trier.elements, [](const auto& e) { return e.second; });
    return {begun ? Order::kInitFirst : Order::kInitSkipped, ""};
  }

  struct Trier {
    const SkippedInitFinder& finder;
    const Sum& sum;
    const std::vector<size_t>& loops;
    std::map<std::vector<int64_t>, bool> elements;  ///< per element that had a step, whether its init has run
    Trial result;                                   ///< the first init that ran too late
    int64_t left;

    /// Returns false if a bound is not constant, or there are too many iterations.
    bool run(size_t depth, const Point& at) {
      if (depth == loops.size()) return step(at);
      const Loop& loop = finder.nest_.loops[loops[depth]];
      auto min = evaluate(loop.min, at), extent = evaluate(loop.extent, at);
      if (!min || !extent || (left -= std::max<int64_t>(*extent, 0)) < 0) return false;
      for (int64_t i = 0; i < *extent; ++i) {
        Point next = at;
        next.set(loop.var, *min + i);
        if (!run(depth + 1, next)) return false;
      }
      return true;
    }

    bool step(const Point& at) {
      for (const Expr& term : finder.nest_.terms) {
        auto holds = evaluate(term, at);
        if (!holds) return false;
        if (*holds == 0) return true;
      }
      std::vector<int64_t> element;
      for (size_t i : loops) {
        const Loop& loop = finder.nest_.loops[i];
        if (i < sum.outside || (loop.is_bound && !sum.is_driven_by(loop.var))) element.push_back(*at.get(loop.var));
      }
      for (const Axis& axis : sum.elements) {
        auto number = evaluate(axis.value, at);
        if (!number) return false;
        element.push_back(*number);
      }
      bool begins = true;
      for (const Axis& axis : sum.steps) {
        auto value = evaluate(axis.value, at), start = evaluate(axis.min, at);
        if (!value || !start) return false;
        begins &= *value == *start;
      }
      auto [before, is_new] = elements.emplace(std::move(element), begins);
      if (!is_new && begins && !before->second && result.order == Order::kUnknown) {
        result = {Order::kInitLate, place(at)};
      }
      return true;
    }

    /// Returns the values of the reduction loops for messages: "r0 = 0, r1 = 7".
    std::string place(const Point& at) const {
      std::string text;
      for (size_t i : loops) {
        if (i < sum.outside) continue;
        const Ref<Var>& v = finder.nest_.loops[i].var;
        text += (text.empty() ? "" : ", ") + v->name_hint + " = " + std::to_string(*at.get(v));
      }
      return text;
    }
  };

  /// Proves that the init runs first if the loops are independent digits of the axes, as after fuse() and split(). Then
  /// all steps of an element run, except those that conditions exclude. The first one has all digits of reduction axes
  /// at 0, since a sum of loops, of which an axis takes digits, increases from iteration to iteration. Conditions that
  /// only guard partial tiles hold in this step; others are proved in terms of the axes.
  bool has_all_steps(const Sum& sum) {
    const Block& block = *sum.realize->block;
    Digits digits;
    assume_instance(*sum.realize, digits.analyzer);
    const std::vector<bool> joined = joined_with_steps(sum);
    for (size_t i : indices_of(nest_.loops)) {
      const Loop& loop = nest_.loops[i];
      assume_runs(loop.extent, digits.analyzer);
      if (joined[i]) {
        digits.inputs.emplace_back(loop.var, range(loop.min, loop.extent));
      } else {
        digits.analyzer.bind(loop.var, loop.min, loop.extent);
      }
    }
    for (const Loop& loop : nest_.loops) {
      if (digits.moves(loop.min) || digits.moves(loop.extent)) return false;
    }
    for (const BufferDomain& domain : declared_) arith::assume(digits.analyzer, domain);
    digits.axes = sum.steps;
    std::ranges::copy_if(sum.elements, std::back_inserter(digits.axes),
                         [&](const Axis& axis) { return digits.moves(axis.value); });
    const Expr predicate = substitute(sum.realize->predicate, nest_.values);
    for (size_t i = sum.steps.size(); i < digits.axes.size(); ++i) {
      Axis& axis = digits.axes[i];
      axis.value = ascending(axis.value, axis.min, axis.extent, digits.inputs, predicate, digits.analyzer);
    }
    std::vector<Expr> own, beyond, around(nest_.terms);
    add_terms(predicate, own);
    around.resize(around.size() - own.size());
    for (auto* terms : {&own, &around}) std::erase_if(*terms, [&](const Expr& term) { return !digits.moves(term); });
    // Terms that follow from the domains of the axes hold in every step.
    add_terms(substitute(condition_beyond_domains(*sum.realize), nest_.values), beyond);
    auto is_implied = [&](const Expr& term) {
      return none_of(beyond, [&](const Expr& other) { return same_expr(term, other); });
    };
    auto number = [&](const Expr& e) { return known(e, block); };
    // Some terms, such as f < n * m, are needed to detect the map; others, such as f % m <= f // m, prevent it.
    return accepts_some(own, [&](const Expr& condition, std::vector<Expr> left) {
      std::erase_if(left, is_implied);
      append_range(left, around);
      const size_t steps = sum.steps.size();
      return digits.find(condition) && digits.begin_with_loops(steps) && digits.hold_at_start(left, steps, number);
    });
  }

  /// Applies the theorem to the nest in which loops are split into digits (loop_digits.h).
  bool begins_by_digits(const Sum& sum) const {
    const Block& block = *sum.realize->block;
    arith::Analyzer analyzer;
    assume_instance(*sum.realize, analyzer);
    for (const Loop& loop : nest_.loops) {
      analyzer.bind(loop.var, loop.min, loop.extent);
      assume_runs(loop.extent, analyzer);
    }
    for (const Expr& term : nest_.terms) {  // 0 <= a < b * c implies that b and c are not 0
      const LT* less = term.as<LT>();
      if (less && analyzer.can_prove(ge(less->a, 0))) assume_runs(less->b, analyzer);
    }
    auto values = [&](const LoopNest& nest) {
      std::vector<Expr> result;
      for (bool of_steps : {true, false}) {
        for (size_t i : indices_of(block.iter_vars)) {
          if (is_reduction_axis(block.iter_vars[i]) == of_steps)
            result.push_back(nest.values.at(block.iter_vars[i]->var));
        }
      }
      return result;
    };
    auto selects = [&](const Ref<Var>& v) {  // whether a loop selects the element without an axis
      return any_of(block.writes, [&](const auto& write) { return uses_var(write, v); });
    };
    SkippedInitFinder of_digits(*this);
    if (!split_into_digits(of_digits.nest_, values, selects, analyzer)) return false;
    return !of_digits.why_unproved(of_digits.reduction(*sum.realize));
  }

  /// Returns, per loop, whether it shares an axis with a reduction loop, directly or through other loops.
  std::vector<bool> joined_with_steps(const Sum& sum) const {
    std::vector<bool> joined(nest_.loops.size());
    auto join = [&](const Axis& axis) {
      bool grows = false;
      for (size_t i = sum.outside; i < nest_.loops.size(); ++i) {
        if (joined[i] || !uses_var(axis.value, nest_.loops[i].var)) continue;
        joined[i] = grows = true;
      }
      return grows;
    };
    for (const Axis& step : sum.steps) join(step);
    for (bool grows = true; grows;) {
      grows = false;
      for (const Axis& element : sum.elements) {
        bool shares = false;
        for (size_t i = sum.outside; i < nest_.loops.size(); ++i)
          shares |= joined[i] && uses_var(element.value, nest_.loops[i].var);
        grows |= shares && join(element);
      }
    }
    return joined;
  }

  /// Assumes that sizes are not negative, and that the domains of a block that runs are not empty.
  void assume_instance(const BlockRealize& realize, arith::Analyzer& analyzer) const {
    assume_shapes(*realize.block, analyzer);
    for (const Ref<IterVar>& axis : realize.block->iter_vars) {
      const Expr extent = substitute(axis->dom->extent, nest_.values);
      assume_runs(extent, analyzer);
      if (!const_int(extent)) analyzer.assume(ge(extent, 1));
    }
  }

  const Block* only_;
  bool is_outside_;  ///< whether the walk is outside of `only_`
  MemoryNames names_;
  LoopNest nest_;                       ///< loops and conditions around the current statement
  std::vector<Stmt> stmts_;             ///< the loop statements of `nest_`
  std::vector<size_t> inside_;          ///< per condition of `nest_`, the number of loops around it
  std::vector<BufferDomain> declared_;  ///< domains of buffers that enclosing blocks declare
  std::vector<std::pair<Expr, Ref<Var>>> read_;
};

}  // namespace

std::optional<SkippedInit> find_skipped_init(const Stmt& body, const Block* only) {
  SkippedInitFinder finder(body, only);
  finder.walk(body);
  return std::move(finder.found);
}

Status verify_inits(const NodeRef& node) {
  if (!node.defined()) return Ok{};
  if (const Module* module = node.as<Module>()) {
    for (const auto& [name, func] : module->functions) TW_RETURN_IF_ERROR(verify_inits(func));
    return Ok{};
  }
  const PrimFunc* func = node.as<PrimFunc>();
  if (!func && node.sort() != Sort::kStmt) return Ok{};
  auto skipped = find_skipped_init(func ? func->body : Stmt(node));
  if (!skipped) return Ok{};
  Diagnostic refusal =
      script_error("verify/init-skipped", skipped->what + ": " + skipped->why, std::move(skipped->hint));
  refusal.span = skipped->block.span();
  refusal.nodes.push_back(keep(skipped->block));
  return refusal;
}

}  // namespace tilewright::analysis
