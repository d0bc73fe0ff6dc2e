#include "schedule/relocate.h"

#include <algorithm>

#include "analysis/block_facts.h"
#include "analysis/independence.h"
#include "arith/region_bound.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "schedule/edit.h"

namespace tilewright::schedule {
namespace {

using arith::IntSet;

/// index = axis * scale + offset, where offset mentions no axis but may be spread over [0, slack] by smaller terms.
struct Solved {
  int axis = -1;
  int64_t scale = 1;
  int64_t divisor = 1;  ///< index = axis // divisor
  Expr offset;
  Expr slack;  ///< null: 0
};

int axis_number(const Block& block, const Expr& e) {
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    if (e == block.iter_vars[i]->var) return static_cast<int>(i);
  }
  return -1;
}

/// Splits a sum into terms.
void collect_terms(const Expr& e, std::vector<Expr>& terms) {
  if (const Add* sum = e.as<Add>()) {
    collect_terms(sum->a, terms);
    collect_terms(sum->b, terms);
  } else if (const Sub* difference = e.as<Sub>(); difference && const_int(difference->b)) {
    collect_terms(difference->a, terms);
    terms.push_back(constant(e.dtype(), -*const_int(difference->b)));
  } else {
    terms.push_back(e);
  }
}

/// Takes an index apart around the axis with the largest factor.
std::optional<Solved> take_apart(const Block& block, const Expr& index, arith::Analyzer& analyzer) {
  if (const FloorDiv* quotient = index.as<FloorDiv>()) {
    int axis = axis_number(block, quotient->a);
    auto divisor = const_int(quotient->b);
    if (axis < 0 || !divisor || *divisor < 1) return std::nullopt;
    return Solved{axis, 1, *divisor, zero(index.dtype()), {}};
  }
  std::vector<Expr> terms;
  collect_terms(index, terms);
  Solved best;
  best.offset = zero(index.dtype());
  std::vector<std::pair<int64_t, int>> scaled;  // scale, axis
  for (const Expr& term : terms) {
    int axis = axis_number(block, term);
    int64_t scale = 1;
    if (const Mul* product = term.as<Mul>(); product && const_int(product->b)) {
      axis = axis_number(block, product->a);
      scale = *const_int(product->b);
    }
    if (axis >= 0 && scale > 0) {
      scaled.emplace_back(scale, axis);
    } else if (uses_any_var(term, [&](const Ref<Var>& v) { return axis_number(block, v) >= 0; })) {
      return std::nullopt;
    } else {
      best.offset = best.offset + term;
    }
  }
  if (scaled.empty()) return std::nullopt;
  auto largest = std::max_element(scaled.begin(), scaled.end());
  best.scale = largest->first;
  best.axis = largest->second;
  Expr slack = zero(index.dtype());
  for (const auto& [scale, axis] : scaled) {
    if (axis == best.axis && scale == best.scale) continue;
    if (axis == best.axis) return std::nullopt;
    const Ref<Range>& dom = block.iter_vars[axis]->dom;
    best.offset = best.offset + dom->min * scale;
    slack = slack + (dom->extent - 1) * scale;
  }
  if (!is_const_int(slack, 0)) best.slack = analyzer.simplify(slack);
  return best;
}

}  // namespace

AxisSets solve_axes(const Block& block, const Ref<BufferRegion>& region, const arith::Box& box, Fit fit,
                    arith::Analyzer& analyzer) {
  AxisSets sets(block.iter_vars.size());
  for (size_t d = 0; d < box.size(); ++d) {
    if (!box[d].is_bounded()) continue;
    const Range& range = *region->region[d];
    std::optional<Solved> solved = take_apart(block, range.min, analyzer);
    if (!solved) continue;
    // The region of an instance is [axis * scale + offset, ... + reach].
    Expr reach = range.extent - 1;
    if (solved->slack.defined()) reach = reach + solved->slack;
    Expr low = box[d].min - solved->offset, high = box[d].max - solved->offset;
    Expr min, max;
    if (solved->divisor != 1) {
      min = low * solved->divisor;
      max = high * solved->divisor + (solved->divisor - 1);
    } else if (fit == Fit::kTouch) {
      min = floordiv(low - reach + (solved->scale - 1), solved->scale);
      max = floordiv(high, solved->scale);
    } else {
      min = floordiv(low + (solved->scale - 1), solved->scale);
      max = floordiv(high - reach, solved->scale);
    }
    IntSet set = IntSet::interval(analyzer.simplify(min), analyzer.simplify(max));
    if (analyzer.can_prove_equal(set.min, set.max)) set = IntSet::point(set.min);
    IntSet& old = sets[solved->axis];
    old = old.is_everything() ? set : arith::intersect(old, set, analyzer);
  }
  return sets;
}

std::vector<int> statements_of(const Tree& tree, int loop) {
  std::vector<int> children = tree.children(loop);
  return tree.stmt(children[0]).is<SeqStmt>() ? tree.children(children[0]) : children;
}

int statement_with(const Tree& tree, const std::vector<int>& statements, int at) {
  for (size_t i = 0; i < statements.size(); ++i) {
    if (tree.contains(statements[i], at)) return static_cast<int>(i);
  }
  return -1;
}

Status check_only_writer(const Move& move, const analysis::Scope& scope, int self, const char* rule) {
  for (const Ref<BufferRegion>& write : move.block.block().writes) {
    const std::string& name = write->buffer->name;
    for (int reader : scope.readers(write->buffer)) {
      if (reader >= self) continue;
      return refuse(move.method + rule,
                    describe_block(*scope.children()[reader]->block) + " reads '" + name + "' before " +
                        describe(move.block) + " writes it",
                    {move.block.node()});
    }
    if (scope.writers(write->buffer).size() > 1) {
      return refuse(move.method + rule,
                    "'" + name + "' is written by other blocks than " + describe(move.block) + " as well",
                    {move.block.node()}, "move the block before its reduction is decomposed");
    }
  }
  return Ok{};
}

Status check_same_scope(const Move& move) {
  const Tree& tree = *move.block.tree;
  bool same = move.block.func == move.loop.func && tree[move.block.at].scope == tree[move.loop.at].scope &&
              tree[move.block.at].scope != Tree::kNone;
  if (!same) {
    return refuse(move.method + "/P2", describe(move.block) + " and " + describe(move.loop) +
                                           " are not in the same scope", {move.block.node(), move.loop.node()},
                  "a block moves among the loops of the block that encloses it");
  }
  if (tree.contains(move.loop.at, move.block.at)) {
    return refuse(move.method + "/P2", describe(move.loop) + " is already around " + describe(move.block),
                  {move.block.node(), move.loop.node()});
  }
  return Ok{};
}

Status check_block_role(const Move& move) {
  const Tree& tree = *move.block.tree;
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(move.block.at));
  bool good = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
  if (!good) {
    std::string why = facts.role == analysis::BlockRole::kUpdate ? "it updates elements that another block has set"
                                                                 : facts.why;
    return refuse(move.method + "/P1", describe(move.block) + " is neither a complete nor a reduction block: " + why,
                  {move.block.node()});
  }
  std::vector<int> loops = tree.loops_above(move.block.at);
  int from = loops.empty() ? tree[move.block.at].parent : tree[loops.front()].parent;
  if (auto obstacle = analysis::why_irregular_reduction(tree, from, move.block.at)) {
    return refuse(move.method + "/P1", *obstacle);
  }
  return Ok{};
}

Status recheck_execution(const Tree& tree, int at, const std::string& method) {
  for (; at != Tree::kNone; at = tree[at].parent) {
    if (!tree[at].is_loop) continue;
    const For& loop = tree.for_at(at);
    if (loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled) continue;
    bool block_axis = loop.thread_binding.defined() && loop.thread_binding->thread_tag.starts_with("blockIdx");
    auto problem = analysis::why_dependent(tree, at, loop.kind == ForKind::kParallel || block_axis);
    if (!problem) continue;
    Diagnostic d = refuse(method + "/P9", problem->obstacle,
                          "take this step before the loop is made parallel, vectorized or bound to a thread");
    d.message = "the iterations of " + describe_loop(loop) + " would no longer be independent: " + d.message;
    return d;
  }
  return Ok{};
}

Status check_same_outputs(const Tree& before, int old_at, const Tree& after, int new_at, const std::string& method) {
  const BlockRealize &was = *before.realize_at(old_at), &is = *after.realize_at(new_at);
  int old_scope = before[old_at].scope, new_scope = after[new_at].scope;
  auto new_loops = analysis::loops_between(after, new_scope, new_at);
  arith::Analyzer analyzer;
  analysis::bind_above(analyzer, before, old_scope);
  for (size_t i = 0; i < was.block->writes.size(); ++i) {
    const Ref<BufferRegion>& write = was.block->writes[i];
    arith::Box all = arith::relax_region(analysis::bound_region(was, write),
                                         analysis::domains_of(before, before.loops_above(old_at)), analyzer,
                                         was.predicate);
    std::optional<arith::Box> now;
    arith::Box most;
    if (new_loops) {
      now = analysis::produced(is, is.block->writes[i], after, *new_loops, analyzer);
      most = arith::relax_region(analysis::bound_region(is, is.block->writes[i]),
                                 analysis::domains_of(after, *new_loops), analyzer, is.predicate);
    }
    bool same = now && arith::proves_subset(all, *now, analyzer) && arith::proves_subset(most, all, analyzer);
    if (same) continue;
    return refuse(method + "/P6",
                  "in the new place " + describe_block(*was.block) + " would not provably write the same of '" +
                      write->buffer->name + "': before, " + brief(write->buffer, all) + "; then, " +
                      (now ? brief(write->buffer, *now) : std::string("nothing is known")),
                  {before.stmt(old_at)}, "its producers must compute all that it reads, each iteration a part of it");
  }
  return Ok{};
}

namespace {

/// The instances of a block that run where it stands now: all within a box, and each of that box.
std::optional<arith::Box> instances_now(const Tree& tree, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  std::vector<int> loops = tree.loops_above(block);
  int scope = tree[block].scope;
  auto between = analysis::loops_between(tree, scope, block);
  if (!between) return std::nullopt;
  arith::Analyzer analyzer;
  analysis::bind_above(analyzer, tree, scope);
  arith::Region points;
  for (const Expr& value : realize.iter_values) points.push_back(range(value, one(value.dtype())));
  auto all = arith::region_lower_bound(points, analysis::inputs_of(tree, loops), realize.predicate, analyzer);
  if (!all) return std::nullopt;
  arith::Box most = arith::relax_region(points, analysis::domains_of(tree, loops), analyzer, realize.predicate);
  return arith::proves_subset(most, *all, analyzer) ? all : std::nullopt;
}

/// Every instance of the block's axes accesses buffers within their shapes.
bool is_safe_everywhere(const Block& block) {
  arith::Analyzer analyzer;
  for (const Ref<IterVar>& axis : block.iter_vars) analyzer.bind(axis->var, axis->dom);
  auto inside = [&](const Ref<BufferRegion>& region) {
    arith::Box shape;
    for (const Expr& extent : region->buffer->shape) shape.push_back(IntSet::of_range(range_of(extent)));
    return arith::proves_subset(arith::box_of(region->region), shape, analyzer);
  };
  return std::all_of(block.reads.begin(), block.reads.end(), inside) &&
         std::all_of(block.writes.begin(), block.writes.end(), inside);
}

/// Loops ax0, ax1, ... around the block.
class Nest {
 public:
  Nest(bool preserve_unit_loops, arith::Analyzer& analyzer)
      : preserve_unit_loops_(preserve_unit_loops), analyzer_(analyzer) {}

  /// `bound`: the instances that may run at all.
  void add_axis(const Ref<IterVar>& axis, const IntSet& wanted, const IntSet& bound) {
    IntSet set = wanted.is_bounded() ? wanted : bound;
    // Where the bound is provably the tighter one, the loop is that long; else a condition keeps to it.
    Expr min = set.min, max = set.max;
    if (analyzer_.can_prove(le(min, bound.min))) min = bound.min;
    if (analyzer_.can_prove(ge(max, bound.max))) max = bound.max;
    DataType dtype = axis->var.dtype();
    min = cast(dtype, analyzer_.simplify(min));
    Expr extent = cast(dtype, analyzer_.simplify(max - min + 1));
    Expr value = min;
    if (preserve_unit_loops_ || !is_const_int(extent, 1)) {
      Ref<Var> loop_var = var("ax" + std::to_string(loops_.size()), dtype);
      loops_.emplace_back(loop_var, extent);
      analyzer_.bind(loop_var, range_of(extent));
      value = min + loop_var;
    }
    values_.push_back(value);
    Expr low = ge(value, bound.min), high = lt(value, bound.max + 1);
    if (!analyzer_.can_prove(low)) predicate_ = logical_and(predicate_, low);
    if (!analyzer_.can_prove(high)) predicate_ = logical_and(predicate_, analyzer_.simplify(high));
  }

  Stmt finish(const Ref<Block>& block, SpanId span) {
    Stmt nest = make<BlockRealize>({.iter_values = values_, .predicate = predicate_, .block = block}, span);
    for (size_t i = loops_.size(); i-- > 0;) nest = loop(loops_[i].first, loops_[i].second, std::move(nest));
    return nest;
  }

 private:
  bool preserve_unit_loops_;
  arith::Analyzer& analyzer_;
  std::vector<std::pair<Ref<Var>, Expr>> loops_;
  std::vector<Expr> values_;
  Expr predicate_ = bool_imm(true);
};

}  // namespace

Result<Ref<Block>> relocate(const Move& move, const AxisSets& axes) {
  const Tree& tree = *move.block.tree;
  const Block& block = move.block.block();
  int64_t index = move.index == -1 ? move.last : move.index == -2 ? move.first : move.index;
  if (move.first > move.last || index < move.first || index > move.last) {
    return refuse(move.method + "/P7",
                  describe(move.block) + " cannot stand at position " + std::to_string(index) + " under " +
                      describe(move.loop) + ": possible are " + std::to_string(move.first) + " to " +
                      std::to_string(move.last),
                  {move.block.node(), move.loop.node()},
                  "it has to come after what it reads from and before what reads from it");
  }
  std::optional<arith::Box> before = instances_now(tree, move.block.at);
  if (!before && !(move.method == "compute_at" && is_safe_everywhere(block))) {
    return refuse(move.method + "/P8", "it cannot be proved which instances of " + describe(move.block) +
                                           " run where it stands now", {move.block.node()},
                  "simplify the loops around it, or move it earlier in the schedule");
  }
  arith::Analyzer analyzer;
  analysis::bind_above(analyzer, tree, move.loop.at);
  Nest nest(move.preserve_unit_loops, analyzer);
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const Ref<IterVar>& axis = block.iter_vars[i];
    IntSet bound = before ? (*before)[i] : IntSet::of_range(axis->dom);
    if (bound.is_point()) bound.max = bound.min;
    nest.add_axis(axis, analysis::is_reduction_axis(axis) ? IntSet::everything() : axes[i], bound);
  }
  Stmt moved = nest.finish(tree.block_ref(move.block.at), move.block.node().span());
  TreeEdit edit(tree);
  edit.remove(move.block.at);
  std::vector<int> places = statements_of(tree, move.loop.at);
  if (static_cast<size_t>(index) == places.size()) {
    edit.insert_after(places.back(), std::move(moved));
  } else {
    edit.insert_before(places[index], std::move(moved));
  }
  return edit.finish();
}

}  // namespace tilewright::schedule
