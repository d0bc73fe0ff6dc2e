// The theorem: let s replace the loops that drive reduction axes by their first iterations. Where an iteration p runs,
// s(p) is one of the same element. If s(p) lies inside of all loops, has all reduction axes at the beginnings of their
// domains, and fulfills all conditions wherever p does, then the init runs for each element of which a step runs.
//
// Where that is not proved and all numbers are known, all iterations are tried.
#include "analysis/skipped_init.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "analysis/axis_condition.h"
#include "analysis/block_facts.h"
#include "analysis/brief.h"
#include "analysis/cover.h"
#include "analysis/witness.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

/// Iterations that are tried for one block.
constexpr int64_t kTries = 1 << 14;

struct Loop {
  Ref<Var> var;
  Expr min, extent;
};

/// A reduction in terms of the loops around it.
struct Sum {
  const BlockRealize* realize;
  std::vector<Expr> steps, starts;  ///< of its reduction axes: what they are bound to, where their domains begin
  std::vector<Expr> elements;       ///< what its other axes are bound to
  std::vector<Ref<Var>> drivers;    ///< loops that the steps follow, or the bounds of such loops

  bool is_driven_by(const Ref<Var>& v) const { return std::find(drivers.begin(), drivers.end(), v) != drivers.end(); }
  bool is_selected_by(const Ref<Var>& v) const { return uses(elements, v); }
  static bool uses(const std::vector<Expr>& values, const Ref<Var>& v) {
    return std::any_of(values.begin(), values.end(), [&](const Expr& e) { return uses_var(e, v); });
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

/// A loop that runs has no extent of 0, nor a factor of one.
void assume_runs(const Expr& extent, arith::Analyzer& analyzer) {
  if (const_int(extent)) return;
  if (const Mul* product = extent.as<Mul>()) {
    assume_runs(product->a, analyzer);
    assume_runs(product->b, analyzer);
  } else if (extent.is<Var>()) {
    analyzer.assume(ge(extent, one(extent.dtype())));
  }
}

/// Open sizes of the block's buffers are not negative.
void assume_shapes(const Block& block, arith::Analyzer& analyzer) {
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const Ref<BufferRegion>& region : *regions) {
      for (const Expr& extent : region->buffer->shape) {
        if (extent.is<Var>()) analyzer.assume(ge(extent, zero(extent.dtype())));
      }
    }
  }
}

class SkippedInitFinder {
 public:
  explicit SkippedInitFinder(const Block* only) : only_(only), is_outside_(only != nullptr) {}

  void walk(const Stmt& stmt) {
    if (found || !stmt.defined()) return;
    if (const For* loop = stmt.as<For>()) {
      loops_.push_back({loop->loop_var, substitute(loop->min, values_), substitute(loop->extent, values_)});
      walk(loop->body);
      loops_.pop_back();
    } else if (const IfThenElse* branch = stmt.as<IfThenElse>()) {
      under(branch->condition, [&] { walk(branch->then_case); });
      if (branch->else_case.defined()) under(logical_not(branch->condition), [&] { walk(branch->else_case); });
    } else if (const LetStmt* let = stmt.as<LetStmt>()) {
      if (let->var.dtype().is_integral()) values_[let->var] = substitute(let->value, values_);
      walk(let->body);
    } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
      for (size_t i = 0; i < realize->iter_values.size(); ++i) {
        values_[realize->block->iter_vars[i]->var] = substitute(realize->iter_values[i], values_);
      }
      const bool outside = is_outside_;
      is_outside_ &= &*realize->block != only_;
      under(realize->predicate, [&] {
        if (!is_outside_) check(*realize);
        if (realize->block->init.defined()) walk(realize->block->init);
        walk(realize->block->body);
      });
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
    const size_t before = terms_.size();
    add_terms(substitute(condition, values_), terms_);
    work();
    terms_.resize(before);
  }

  void check(const BlockRealize& realize) {
    const Block& block = *realize.block;
    if (!block.init.defined() || is_nop(block.init)) return;
    Sum sum{&realize, {}, {}, {}, {}};
    for (size_t i = 0; i < realize.iter_values.size(); ++i) {
      Expr value = substitute(realize.iter_values[i], values_);
      if (!is_reduction_axis(block.iter_vars[i])) {
        sum.elements.push_back(std::move(value));
        continue;
      }
      sum.steps.push_back(std::move(value));
      sum.starts.push_back(substitute(block.iter_vars[i]->dom->min, values_));
    }
    if (sum.steps.empty()) return;
    for (size_t i = loops_.size(); i-- > 0;) {
      const Ref<Var>& v = loops_[i].var;
      bool bounds = std::any_of(loops_.begin() + static_cast<std::ptrdiff_t>(i) + 1, loops_.end(), [&](const Loop& in) {
        return sum.is_driven_by(in.var) && (uses_var(in.min, v) || uses_var(in.extent, v));
      });
      if (bounds || Sum::uses(sum.steps, v)) sum.drivers.push_back(v);
    }
    std::optional<SkippedInit> obstacle = why_unproved(sum);
    if (obstacle && !begins_when_tried(sum) && !has_all_steps(sum)) found = std::move(obstacle);
  }

  /// What is read is a number that nobody knows; the same one at the same place, unless the block changes it.
  Expr known(const Expr& e, const Block& block) {
    return rewrite(e, [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
      bool changes = std::any_of(block.writes.begin(), block.writes.end(), [&](const Ref<BufferRegion>& write) {
        return write->buffer->data == load->buffer->data;
      });
      for (const auto& [before, number] : read_) {
        if (!changes && same_expr(before, load)) return number;
      }
      Ref<Var> number = var("read", load.dtype());
      read_.emplace_back(load, number);
      return number;
    });
  }

  /// The theorem.
  std::optional<SkippedInit> why_unproved(const Sum& sum) {
    const Block& block = *sum.realize->block;
    arith::Analyzer analyzer;
    assume_shapes(block, analyzer);
    VarMap first;
    for (const Loop& loop : loops_) {
      const Expr min = known(loop.min, block), extent = known(loop.extent, block);
      analyzer.bind(loop.var, min, extent);
      if (!const_int(extent)) analyzer.assume(gt(extent, zero(extent.dtype())));
      assume_runs(extent, analyzer);
      if (sum.is_driven_by(loop.var) && !sum.is_selected_by(loop.var)) first[loop.var] = substitute(loop.min, first);
    }
    for (const Expr& term : terms_) analyzer.assume(known(term, block));
    auto proved = [&](const Expr& e) { return analyzer.can_prove(known(e, block)); };
    for (size_t i = 0; i < sum.steps.size(); ++i) {
      if (proved(eq(substitute(sum.steps[i], first), substitute(sum.starts[i], first)))) continue;
      return SkippedInit{sum.realize->block,
                         "no step is proved to be its first one: an axis of the reduction is bound to " +
                             brief(sum.steps[i]) + ", which need not reach the beginning " + brief(sum.starts[i]) +
                             " of its domain",
                         "let the domain begin where the loop does: T.axis.reduce((i, n), r) in a loop over "
                         "range(i, n)"};
    }
    for (const Loop& loop : loops_) {
      const Expr min = substitute(loop.min, first), extent = substitute(loop.extent, first);
      if (same_expr(min, loop.min) && same_expr(extent, loop.extent)) continue;
      bool runs = first.count(loop.var) ? proved(gt(extent, zero(extent.dtype())))
                                        : proved(ge(loop.var, min)) && proved(lt(loop.var, min + extent));
      if (!runs) return skipped(sum, "loop '" + loop.var->name_hint + "' need not run in its first step");
    }
    for (const Expr& term : terms_) {
      const Expr at_start = substitute(term, first);
      if (same_expr(at_start, term) || proved(at_start)) continue;
      return skipped(sum, "the condition " + brief(term) + " may leave out its first step and keep others");
    }
    return std::nullopt;
  }

  static SkippedInit skipped(const Sum& sum, std::string why) {
    return {
        sum.realize->block, std::move(why),
        "let all steps run and choose what they add, T.if_then_else(r >= i, A[i, r], 0.0), or begin the loop and its "
        "axis at the first step: T.axis.reduce((i, n), r) in a loop over range(i, n)"};
  }

  /// All iterations of the loops that have a say, where their number is small.
  bool begins_when_tried(const Sum& sum) const {
    std::vector<const Loop*> asked;
    for (size_t i = loops_.size(); i-- > 0;) {
      const Ref<Var>& v = loops_[i].var;
      bool has_say = sum.is_driven_by(v) || sum.is_selected_by(v) || Sum::uses(terms_, v) || Sum::uses(sum.starts, v) ||
                     std::any_of(asked.begin(), asked.end(), [&](const Loop* inner) {
                       return uses_var(inner->min, v) || uses_var(inner->extent, v);
                     });
      if (has_say) asked.insert(asked.begin(), &loops_[i]);
    }
    Trial trial{sum, asked, terms_, {}, kTries};
    if (!trial.run(0, Point())) return false;
    return std::all_of(trial.elements.begin(), trial.elements.end(),
                       [](const auto& element) { return element.second; });
  }

  struct Trial {
    const Sum& sum;
    const std::vector<const Loop*>& loops;
    const std::vector<Expr>& terms;
    std::map<std::vector<int64_t>, bool> elements;  ///< of which a step runs: whether the init does
    int64_t left;

    /// False where a number is not known, or there are too many.
    bool run(size_t depth, const Point& at) {
      if (depth == loops.size()) return step(at);
      auto min = evaluate(loops[depth]->min, at), extent = evaluate(loops[depth]->extent, at);
      if (!min || !extent || (left -= std::max<int64_t>(*extent, 0)) < 0) return false;
      for (int64_t i = 0; i < *extent; ++i) {
        Point next = at;
        next.set(loops[depth]->var, *min + i);
        if (!run(depth + 1, next)) return false;
      }
      return true;
    }

    bool step(const Point& at) {
      for (const Expr& term : terms) {
        auto holds = evaluate(term, at);
        if (!holds) return false;
        if (*holds == 0) return true;
      }
      std::vector<int64_t> element;
      for (const Loop* loop : loops) {
        if (!sum.is_driven_by(loop->var)) element.push_back(*at.get(loop->var));
      }
      for (const Expr& value : sum.elements) {
        auto number = evaluate(value, at);
        if (!number) return false;
        element.push_back(*number);
      }
      bool begins = true;
      for (size_t i = 0; i < sum.steps.size(); ++i) {
        auto value = evaluate(sum.steps[i], at), start = evaluate(sum.starts[i], at);
        if (!value || !start) return false;
        begins &= *value == *start;
      }
      elements[std::move(element)] |= begins;
      return true;
    }
  };

  /// Whether loops drive the axes as digits that are independent of one another, as after fuse() and split(), and no
  /// condition on the reduction does more than keep the last tiles inside of the domains. Then all steps of an element
  /// run.
  bool has_all_steps(const Sum& sum) {
    VarMap first;
    arith::Analyzer analyzer;
    arith::IterDomains inputs;
    assume_instance(*sum.realize, analyzer);
    for (const Loop& loop : loops_) {
      assume_runs(loop.extent, analyzer);
      if (sum.is_driven_by(loop.var)) {
        first[loop.var] = substitute(loop.min, first);
        inputs.emplace_back(loop.var, range(loop.min, loop.extent));
      } else {
        analyzer.bind(loop.var, loop.min, loop.extent);
      }
    }
    auto moves = [&](const Expr& e) { return !same_expr(substitute(e, first), e); };
    for (const Loop& loop : loops_) {
      if (moves(loop.min) || moves(loop.extent)) return false;
    }
    // The others stay as they are.
    std::vector<Expr> values = sum.steps;
    std::copy_if(sum.elements.begin(), sum.elements.end(), std::back_inserter(values), moves);
    const Expr own = substitute(sum.realize->predicate, values_);
    std::vector<Expr> own_terms;
    add_terms(own, own_terms);
    for (size_t i = 0; i + own_terms.size() < terms_.size(); ++i) {
      if (moves(terms_[i])) return false;
    }
    for (size_t i = 0; i < sum.steps.size(); ++i) {
      if (!analyzer.can_prove_equal(substitute(sum.steps[i], first), substitute(sum.starts[i], first))) return false;
    }
    if (!moves(substitute(condition_beyond_domains(*sum.realize), values_))) {
      arith::IterMapResult map;
      return is_one_to_one(values, inputs, own, analyzer, &map);
    }
    return fills_a_box(values, sum.starts, inputs, own, analyzer);
  }

  /// A map that takes all of the condition into account reaches each point of its box, as the digits of f do where
  /// f < n * m; those of the steps are to begin at `starts`.
  static bool fills_a_box(const std::vector<Expr>& values, const std::vector<Expr>& starts,
                          const arith::IterDomains& inputs, const Expr& condition, arith::Analyzer& analyzer) {
    const auto map = arith::detect_iter_map(values, inputs, condition, arith::IterMapLevel::kBijective, analyzer);
    if (!map.ok()) return false;
    for (size_t i = 0; i < starts.size(); ++i) {
      if (!analyzer.can_prove_equal(map.indices[i].base, starts[i])) return false;
      for (const arith::IterSplitExpr& digit : map.indices[i].args) {
        if (!analyzer.can_prove(gt(digit.scale, zero(digit.scale.dtype())))) return false;
      }
    }
    return true;
  }

  /// Sizes are not negative, and the domains of a block that runs are not empty.
  void assume_instance(const BlockRealize& realize, arith::Analyzer& analyzer) const {
    assume_shapes(*realize.block, analyzer);
    for (const Ref<IterVar>& axis : realize.block->iter_vars) {
      assume_runs(substitute(axis->dom->extent, values_), analyzer);
    }
  }

  const Block* only_;
  bool is_outside_;  ///< of the only block
  std::vector<Loop> loops_;
  std::vector<Expr> terms_;  ///< the conditions around
  VarMap values_;            ///< of axes and names, in terms of loops
  std::vector<std::pair<Expr, Ref<Var>>> read_;
};

}  // namespace

std::optional<SkippedInit> find_skipped_init(const Stmt& body, const Block* only) {
  SkippedInitFinder finder(only);
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
  Diagnostic refusal = script_error("verify/init-skipped",
                                    "the init of block '" + skipped->block->name_hint +
                                        "' may be skipped, and what it adds up would begin with what "
                                        "the memory held before: " +
                                        skipped->why,
                                    std::move(skipped->hint));
  refusal.span = skipped->block.span();
  refusal.nodes.push_back(keep(skipped->block));
  return refusal;
}

}  // namespace tilewright::analysis
