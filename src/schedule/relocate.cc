#include "schedule/relocate.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "analysis/axis_condition.h"
#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "analysis/changes.h"
#include "analysis/independence.h"
#include "analysis/sizes.h"
#include "analysis/threads.h"
#include "arith/region_bound.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/regions.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/move_hints.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {
using arith::IntSet;
}  // namespace

std::vector<int> statements_of(const Tree& tree, int loop) {
  std::vector<int> children = tree.children(loop);
  return tree.stmt(children[0]).is<SeqStmt>() ? tree.children(children[0]) : children;
}

int statement_with(const Tree& tree, const std::vector<int>& statements, int at) {
  for (size_t i : indices_of(statements)) {
    if (tree.contains(statements[i], at)) return static_cast<int>(i);
  }
  return -1;
}

namespace {

/// Whether a statement outside of blocks may write memory that a bound of the loops around the block reads.
bool bare_statements_change_bounds(const Place& block) {
  const Tree& tree = *block.tree;
  for (int at : tree.loops_above(block.at)) {
    for (const Expr& bound : {tree.for_at(at).min, tree.for_at(at).extent}) {
      if (bound.is<IntImm>() || bound.is<Var>() || !analysis::reads_memory(bound)) continue;
      bool changes = false;
      visit(
          tree.block_at(tree[block.at].scope).body, [](const Ref<BlockRealize>&, Visitor&) {},
          [&](const Ref<BufferStore>& store, Visitor&) { changes |= analysis::may_change(tree, store, bound); },
          [&](const Ref<Evaluate>& call, Visitor&) { changes |= !call->value.is<IntImm>(); });
      if (changes) return true;
    }
  }
  return false;
}

}  // namespace

Status check_bare_statements(const Place& block, const analysis::Scope& scope, const char* code, bool also_reads) {
  if (!scope.bare_statement()) return Ok{};
  const bool touch = scope.bare_statements_touch(*block.tree->realize_at(block.at), also_reads) ||
                     bare_statements_change_bounds(block);
  if (!touch) return Ok{};
  return refuse(code,
                "a statement outside of blocks, in the scope of " + describe(block) +
                    ", uses buffers that this block, or a bound of its loops, reads or writes",
                {block.node(), NodeRef(scope.bare_statement())}, "put it into a block");
}

Status check_only_writer(const Place& block, const analysis::Scope& scope, int self, const char* code,
                         bool also_reads) {
  TW_RETURN_IF_ERROR(check_bare_statements(block, scope, code, also_reads));
  for (const Ref<BufferRegion>& write : block.block().writes) {
    const std::string& name = write->buffer->name;
    for (int reader : scope.readers(write->buffer)) {
      if (reader >= self) continue;
      return refuse(code,
                    describe_block(*scope.children()[reader]->block) + " reads '" + name + "' before " +
                        describe(block) + " writes it",
                    block, "move what reads it first, or this block while they stand in loops of their own");
    }
    if (scope.writers(write->buffer).size() > 1) {
      return refuse(code,
                    "'" + name + "' is written by other blocks than " + describe(block) +
                        " as well, so that it is neither a complete block nor a reduction block of its scope",
                    block, "move the block before its reduction is decomposed");
    }
  }
  return Ok{};
}

Status check_same_scope(const Move& move) {
  const Tree& tree = *move.block.tree;
  bool same = move.block.func == move.loop.func && tree[move.block.at].scope == tree[move.loop.at].scope &&
              tree[move.block.at].scope != Tree::kNone;
  if (!same) {
    return refuse(move.codes.scope,
                  describe(move.block) + " and " + describe(move.loop) + " are not in the same block scope",
                  {move.block.node(), move.loop.node()}, "a block moves among the loops of the block that encloses it");
  }
  if (tree.contains(move.loop.at, move.block.at)) {
    return refuse(move.codes.scope, describe(move.loop) + " is an ancestor of " + describe(move.block),
                  {move.block.node(), move.loop.node()},
                  "the block is inside of that loop already; name a loop of another block");
  }
  return Ok{};
}

namespace {

/// Whether the reduction loops run over the axes in the block's order: one ascending loop per axis, earlier axes
/// outermost.
bool runs_in_order_of_axes(const Tree& tree, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  int last = -1;
  for (int at : tree.loops_above(block)) {
    const For& loop = tree.for_at(at);
    int driven = -1;
    for (int i = 0; i < static_cast<int>(realize.iter_values.size()) && !is_const_int(loop.extent, 1); ++i) {
      bool drives =
          analysis::is_reduction_axis(realize.block->iter_vars[i]) && uses_var(realize.iter_values[i], loop.loop_var);
      if (!drives) continue;
      arith::Analyzer analyzer;
      const Expr rest = analyzer.simplify(realize.iter_values[i] - cast(realize.iter_values[i].dtype(), loop.loop_var));
      if (driven >= 0 || i <= last || uses_var(rest, loop.loop_var)) return false;
      driven = i;
    }
    last = std::max(last, driven);
  }
  return true;
}

}  // namespace

Status check_order_of_steps(const Move& move, const Tree& after, int moved) {
  if (analysis::BlockFacts::of(after.block_ref(moved)).commutative || runs_in_order_of_axes(after, moved)) return Ok{};
  return refuse(move.codes.role,
                describe(move.block) + " combines values in a way whose order matters, and the loops around " +
                    describe(move.loop) + " would bring its steps in another one",
                {move.block.node(), move.loop.node()}, "move the block before its loops are changed");
}

Status check_block_role(const Move& move) {
  const Tree& tree = *move.block.tree;
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(move.block.at));
  bool good = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
  if (!good) {
    const bool reduces = any_of(move.block.block().iter_vars, analysis::is_reduction_axis);
    const bool in_place = facts.role == analysis::BlockRole::kUpdate && facts.why.empty() && !reduces;
    std::string why = in_place            ? "it updates '" + move.block.block().writes[0]->buffer->name + "' in place"
                      : facts.why.empty() ? "it updates elements that another block has set"
                                          : facts.why;
    return refuse(
        move.codes.role, describe(move.block) + " is neither a complete block nor a reduction block: " + why,
        move.block,
        in_place ? "let it store its result in a buffer of its own" : "move it before its reduction is decomposed");
  }
  std::vector<int> loops = tree.loops_above(move.block.at);
  int from = loops.empty() ? tree[move.block.at].parent : tree[loops.front()].parent;
  if (auto obstacle = analysis::why_irregular_reduction(tree, from, move.block.at)) {
    return refuse(move.codes.role, *obstacle, "move it before the loops of its reduction are changed");
  }
  if (!facts.commutative && !runs_in_order_of_axes(tree, move.block.at)) {
    return refuse(move.codes.role,
                  describe(move.block) +
                      " combines values in a way whose order matters, and new loops would run over " +
                      "its axes in their order",
                  move.block, "move the block before its loops are changed");
  }
  return Ok{};
}

namespace {

bool share_a_buffer(const Tree& tree, int a, int b) {
  const std::vector<Ref<BufferRegion>> bound = analysis::binding_reads(tree, a),
                                       other = analysis::binding_reads(tree, b);
  auto touches = [&](const Ref<BufferRegion>& region) {
    const Block& block = tree.block_at(b);
    return tree.touches(block.reads, region->buffer) || tree.touches(block.writes, region->buffer) ||
           tree.touches(other, region->buffer);
  };
  auto any = [&](const std::vector<Ref<BufferRegion>>& regions) { return any_of(regions, touches); };
  return any(tree.block_at(a).reads) || any(tree.block_at(a).writes) || any(bound);
}

/// Returns the parallel, vectorized and thread-bound loops around `at`, and around statements that share a buffer with
/// it.
std::vector<int> concurrent_loops(const Tree& tree, int at) {
  std::vector<int> found;
  if (tree.concurrent_loops().empty()) return found;
  for (int other : tree.blocks()) {
    if (other == 0 || !share_a_buffer(tree, at, other)) continue;
    for (int loop = tree[other].parent; loop != Tree::kNone; loop = tree[loop].parent) {
      const std::vector<int>& all = tree.concurrent_loops();
      if (std::ranges::binary_search(all, loop)) found.push_back(loop);
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

Status recheck_execution(const Tree& tree, int at, const char* code, std::optional<analysis::Conflict> only) {
  for (int loop_at : concurrent_loops(tree, at)) {
    const For& loop = tree.for_at(loop_at);
    auto problem = analysis::why_dependent(tree, loop_at, analysis::Execution::of(loop), at);
    if (only && (!problem || problem->conflict != *only)) continue;
    auto obstacle = problem ? std::optional(problem->obstacle) : analysis::why_not_same_threads(tree, loop_at);
    if (!obstacle) continue;
    Diagnostic d =
        refuse(code, *obstacle, "take this step before the loop is made parallel, vectorized or bound to a thread");
    d.message = "the iterations of " + describe_loop(loop) + " would no longer be independent: " + d.message;
    return d;
  }
  return Ok{};
}

Status recheck_moved(const Tree& tree, int at, const char* code) {
  TW_RETURN_IF_ERROR(recheck_execution(tree, at, code));
  for (int inside = at; inside < tree[at].end; ++inside) {
    if (!tree[inside].is_loop || tree.for_at(inside).kind != ForKind::kThreadBinding) continue;
    if (auto obstacle = analysis::why_threads_differ(tree, at)) {
      return refuse(code, *obstacle, "move the block to where threads of these extents run, or before it has threads");
    }
    break;
  }
  return Ok{};
}

namespace {

/// The conditions under which a block runs: its predicate, and that loops which drive no axis are not empty.
/// `invariant` is the part that is the same for all instances and everywhere in the scope.
struct Conditions {
  Expr invariant = bool_imm(true), varying = bool_imm(true);
};

void divide(const Expr& predicate, const arith::IterDomains& inputs, Conditions& into) {
  if (const And* both = predicate.as<And>()) {
    divide(both->a, inputs, into);
    divide(both->b, inputs, into);
    return;
  }
  bool varies = effect_of(predicate) != Effect::kPure || uses_any_var(predicate, [&](const Ref<Var>& v) {
                  return any_of(inputs, [&](const auto& loop) { return loop.first == v; });
                });
  Expr& part = varies ? into.varying : into.invariant;
  part = logical_and(part, predicate);
}

Conditions conditions_of(const Tree& tree, int block) {
  Conditions found;
  const BlockRealize& realize = *tree.realize_at(block);
  const std::vector<int> loops = tree.loops_above(block);
  if (!is_true(realize.predicate)) divide(realize.predicate, analysis::inputs_of(tree, loops), found);
  for (const Expr& extent : possibly_empty_extents(tree, block, loops, realize.iter_values)) {
    divide(gt(extent, 0), analysis::inputs_of(tree, loops), found);
  }
  return found;
}

}  // namespace

Expr invariant_condition(const Tree& tree, int block) { return conditions_of(tree, block).invariant; }

namespace {

/// Returns the block without the invariant part of its predicate.
BlockRealize where_it_runs(const Tree& tree, int block) {
  BlockRealize realize = *tree.realize_at(block);
  realize.predicate = conditions_of(tree, block).varying;
  return realize;
}

/// Returns the exact box of axis values for which the block runs at its current location, unless no loop iterates.
/// `realize`: the block with the predicate to assume.
std::optional<arith::Box> instances_of(const BlockRealize& realize, const Tree& tree, int block) {
  std::vector<int> loops = tree.loops_above(block);
  int scope = tree[block].scope;
  auto between = analysis::loops_between(tree, scope, block);
  if (!between) return std::nullopt;
  arith::Region points;
  for (const Expr& value : realize.iter_values) points.push_back(range(value, one(value.dtype())));
  if (is_true(realize.predicate)) {
    auto counters = analysis::counters_of(tree, loops);
    if (auto plain = counters ? arith::plain_box(points, *counters) : std::nullopt) return plain;
  }
  auto analyzer = analysis::analyzer_above(tree, scope);
  auto all = analysis::surely_reached(points, analysis::inputs_of(tree, loops), realize.predicate, analyzer);
  if (!all) return std::nullopt;
  // If one of the loops is empty, there are no instances.
  analysis::assume_runs(analyzer, tree, loops);
  arith::Box most = arith::relax_region(points, analysis::domains_of(tree, loops), analyzer, realize.predicate);
  return arith::proves_subset(most, *all, analyzer) ? all : std::nullopt;
}

std::optional<arith::Box> instances_now(const Tree& tree, int block) {
  return instances_of(where_it_runs(tree, block), tree, block);
}

/// Returns the instances of the block as a box of axis values and a condition on the axes that selects from it, such as
/// k <= i.
std::optional<analysis::MaskedBox> masked_instances(const Tree& tree, int block) {
  BlockRealize realize = where_it_runs(tree, block);
  Expr mask = analysis::condition_on_axes(analysis::condition_beyond_domains(realize), tree, block);
  if (!mask.defined()) return std::nullopt;
  realize.predicate = bool_imm(true);
  auto box = instances_of(realize, tree, block);
  if (!box) return std::nullopt;
  auto analyzer = analysis::analyzer_above(tree, tree[block].scope);
  arith::Box domain;
  for (const Ref<IterVar>& axis : realize.block->iter_vars) domain.push_back(IntSet::of_range(axis->dom));
  return analysis::MaskedBox{arith::intersect(*box, domain, analyzer), mask};
}

/// Whether both locations select the same instances of one box, by the same condition on the axes.
bool same_masked_instances(const Tree& before, int old_at, const Tree& after, int new_at) {
  auto was = masked_instances(before, old_at), is = masked_instances(after, new_at);
  if (!was || !is || is_true(was->mask) || !structural_equal(was->mask, is->mask)) return false;
  auto analyzer = analysis::analyzer_above(before, before[old_at].scope);
  return arith::proves_subset(was->box, is->box, analyzer) && arith::proves_subset(is->box, was->box, analyzer);
}

/// Whether the axis values for which the block runs are known exactly, and are the same, before and after the move.
bool same_instances(const Tree& before, int old_at, const Tree& after, int new_at) {
  auto was = instances_now(before, old_at), is = instances_now(after, new_at);
  if (!was || !is) return false;
  auto analyzer = analysis::analyzer_above(before, before[old_at].scope);
  return arith::proves_subset(*was, *is, analyzer) && arith::proves_subset(*is, *was, analyzer);
}

}  // namespace

Status check_same_outputs(const Tree& before, int old_at, const Tree& after, int new_at, const char* code) {
  const BlockRealize was = where_it_runs(before, old_at), is = where_it_runs(after, new_at);
  if (effect_of(was.predicate) != Effect::kPure) {
    return refuse(code, "data decide which instances of " + describe_block(*was.block) + " run", {before.stmt(old_at)},
                  "move what it reads to it, with compute_at or compute_inline");
  }
  int old_scope = before[old_at].scope, new_scope = after[new_at].scope;
  auto new_loops = analysis::loops_between(after, new_scope, new_at);
  auto analyzer = analysis::analyzer_above(before, old_scope);
  auto where_it_ran = analysis::analyzer_above(before, old_scope);
  auto where_it_runs_now = analysis::analyzer_above(before, old_scope);
  analysis::assume_runs(where_it_ran, before, before.loops_above(old_at));
  if (new_loops) analysis::assume_runs(where_it_runs_now, after, *new_loops);
  // A block that surely reads its producers ran only where they ran; other blocks need a proof.
  analysis::assume_all(invariant_condition(before, old_at), where_it_ran);
  if (may_skip_read(was.block->body) && !where_it_ran.can_prove(invariant_condition(after, new_at))) {
    return refuse(code,
                  "in the new place " + describe_block(*was.block) + " might not run at all: " +
                      brief(where_it_ran.simplify(invariant_condition(after, new_at))) + " is not known",
                  {before.stmt(old_at)}, "move what it reads to it, with compute_at or compute_inline");
  }
  if (new_loops && same_masked_instances(before, old_at, after, new_at)) return Ok{};
  if (new_loops && same_instances(before, old_at, after, new_at)) return Ok{};
  for (size_t i : indices_of(was.block->writes)) {
    const Ref<BufferRegion>& write = was.block->writes[i];
    arith::Box all = analysis::touched(was, write, before, before.loops_above(old_at), where_it_ran);
    std::optional<arith::Box> now;
    arith::Box most;
    if (new_loops) {
      now = analysis::produced(is, is.block->writes[i], after, *new_loops, analyzer);
      most = analysis::touched(is, is.block->writes[i], after, *new_loops, where_it_runs_now);
    }
    bool same =
        now && arith::proves_subset(all, *now, where_it_ran) && arith::proves_subset(most, all, where_it_runs_now);
    if (same) continue;
    return refuse(code,
                  "in the new place " + describe_block(*was.block) + " would not provably write the same of '" +
                      write->buffer->name + "': before, " + brief(write->buffer, all) + "; then, " +
                      (now ? brief(write->buffer, *now) : std::string("nothing is known")),
                  {before.stmt(old_at)}, "its producers must compute all that it reads, each iteration a part of it");
  }
  return Ok{};
}

Result<arith::Box> known_instances(const Place& block, const char* code) {
  if (auto instances = instances_now(*block.tree, block.at)) return std::move(*instances);
  return refuse(code, "it cannot be proved which instances of " + describe(block) + " run", block,
                "take this step before loops are changed, or let a block of its own choose what it reads");
}

bool runs_whole_domain(const Tree& tree, int at) {
  auto instances = instances_now(tree, at);
  if (!instances || !is_true(conditions_of(tree, at).invariant)) return false;
  auto analyzer = analysis::analyzer_above(tree, tree[at].scope);
  arith::Box domain;
  for (const Ref<IterVar>& axis : tree.block_at(at).iter_vars) domain.push_back(IntSet::of_range(axis->dom));
  return arith::proves_subset(domain, *instances, analyzer) && arith::proves_subset(*instances, domain, analyzer);
}

namespace {

/// Whether the block's accesses are in bounds for all values of its axes.
bool is_safe_everywhere(const Block& block) {
  arith::Analyzer analyzer;
  for (const Ref<IterVar>& axis : block.iter_vars) analyzer.bind(axis->var, axis->dom);
  auto inside = [&](const Ref<BufferRegion>& region) {
    return arith::proves_subset(arith::box_of(region->region), arith::box_of(whole_region(region->buffer->shape)),
                                analyzer);
  };
  return all_of(block.reads, inside) && all_of(block.writes, inside);
}

/// Whether all elements that the block reads are initialized whenever it runs.
bool reads_values(const Tree& tree, int at) {
  const auto& reads = tree.block_at(at).reads;
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[at].scope);
  return all_of(reads, [&](const Ref<BufferRegion>& read) {
    for (int writer : scope.writers(read->buffer)) {
      if (!is_true(analysis::condition_beyond_domains(*scope.children()[writer]))) return false;
    }
    const arith::Box all = arith::box_of(whole_region(read->buffer->shape));
    Expr condition = written_condition(tree, tree[at].scope, at, read->buffer, {}, all);
    return condition.defined() && is_true(condition);
  });
}

/// Builds the loops ax0, ax1, ... around the moved block.
class Nest {
 public:
  /// `around`: the variables of the loops around the nest. `condition`: the block's predicate in all iterations of
  /// these.
  Nest(bool preserve_unit_loops, std::vector<Ref<Var>> around, Expr condition, arith::Analyzer& analyzer)
      : preserve_unit_loops_(preserve_unit_loops),
        around_(std::move(around)),
        analyzer_(analyzer),
        predicate_(std::move(condition)) {}

  /// Adds a loop per axis over the values `wanted`. Axes whose values depend on other axes come last. `bound`: the
  /// values that ran before the move.
  void add_axes(const std::vector<Ref<IterVar>>& axes, const AxisSets& wanted, const std::vector<IntSet>& bound) {
    auto depends = [&](const IntSet& set) {
      return set.is_bounded() && uses_any_var(set.min + set.max, [&](const Ref<Var>& v) {
               return any_of(axes, [&](const Ref<IterVar>& a) { return a->var == v; });
             });
    };
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!depends(wanted[i])) add_axis(axes[i], wanted[i], bound[i]);
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!depends(wanted[i])) continue;
      IntSet set = wanted[i];
      const bool is_point = set.is_point();
      set = {substitute(set.min, values_), substitute(set.max, values_)};
      if (is_point) set.max = set.min;
      // A dependence on an axis that itself depends on others is not supported: the loop runs over the whole bound.
      add_axis(axes[i], depends(set) ? IntSet::everything() : set, bound[i]);
    }
  }

  /// Adds a condition on the axes to the predicate.
  void require(const Expr& condition) {
    Expr asked = analyzer_.simplify(substitute(condition, values_));
    if (!analyzer_.can_prove(asked)) predicate_ = logical_and(predicate_, asked);
  }

  Stmt finish(const Ref<Block>& block, SpanId span) {
    std::vector<Expr> values;
    for (const Ref<IterVar>& axis : block->iter_vars) values.push_back(values_.at(axis->var));
    Stmt nest = make<BlockRealize>({.iter_values = values, .predicate = predicate_, .block = block}, span);
    for (const auto& [v, extent] : reversed(loops_)) nest = loop(v, extent, std::move(nest));
    return nest;
  }

 private:
  void add_axis(const Ref<IterVar>& axis, const IntSet& wanted, const IntSet& bound) {
    IntSet set = wanted.is_bounded() ? wanted : bound;
    // If the bound is provably tighter, the loop runs over the bound; otherwise, the predicate enforces it.
    Expr min = set.min, max = set.max;
    if (min != bound.min && analyzer_.can_prove(le(min, bound.min))) min = bound.min;
    if (max != bound.max && analyzer_.can_prove(ge(max, bound.max))) max = bound.max;
    // A variable trip count is no better than a predicate.
    bool tighter = min != set.min || max != set.max;
    if (tighter && varies(max - min) && !varies(set.max - set.min)) std::tie(min, max) = std::pair(set.min, set.max);
    // A loop over exactly the bound needs no predicate.
    const bool begins_there = min == bound.min, ends_there = max == bound.max;
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
    values_.emplace(axis->var, value);
    // Move constants to one side, and drop unit loops: 1 <= i * 8 + ax0 and i * 8 + ax0 < 25.
    if (begins_there && ends_there) return;
    auto [moving, constant] = split_constant(analyzer_.simplify(value));
    Expr low = le(analyzer_.simplify(bound.min - constant), moving);
    Expr high = lt(moving, analyzer_.simplify(bound.max + 1 - constant));
    if (!analyzer_.can_prove(low)) predicate_ = logical_and(predicate_, low);
    if (!analyzer_.can_prove(high)) predicate_ = logical_and(predicate_, high);
  }

  bool varies(const Expr& e) const {
    return uses_any_var(analyzer_.simplify(e), [&](const Ref<Var>& v) {
      return any_of(around_, [&](const Ref<Var>& loop_var) { return loop_var == v; });
    });
  }

  /// Splits e into a varying part and a constant.
  std::pair<Expr, Expr> split_constant(const Expr& e) {
    Expr constant = zero(e.dtype());
    for (const auto& [term, negative] : terms_of(e)) {
      if (const_int(term)) constant = negative ? constant - term : constant + term;
    }
    return {is_const_int(constant, 0) ? e : analyzer_.simplify(e - constant), constant};
  }

  bool preserve_unit_loops_;
  std::vector<Ref<Var>> around_;
  arith::Analyzer& analyzer_;
  std::vector<std::pair<Ref<Var>, Expr>> loops_;
  VarMap values_;  ///< values of the axes that were added so far
  Expr predicate_;
};

/// Builds the program with the block under the loop, where it runs over `axes`. Refuses an index out of range, and an
/// unknown set of instances before the move.
Result<Ref<Block>> relocate(const Move& move, const AxisSets& axes) {
  const Tree& tree = *move.block.tree;
  const Block& block = move.block.block();
  int64_t index = move.index == -1 ? move.last : move.index == -2 ? move.first : move.index;
  if (move.first > move.last || index < move.first || index > move.last) {
    return refuse(
        move.codes.index,
        describe(move.block) + " cannot stand at position " + std::to_string(index) + " under " + describe(move.loop) +
            ": possible are " + std::to_string(move.first) + " to " + std::to_string(move.last),
        {move.block.node(), move.loop.node()}, "it has to come after what it reads from and before what reads from it");
  }
  std::optional<arith::Box> before = instances_now(tree, move.block.at);
  // Additional steps would change the result of a reduction.
  const bool may_add = move.may_add_instances &&
                       none_of(block.iter_vars, [](const auto& axis) { return analysis::is_reduction_axis(axis); });
  const bool may_run_all = !before && may_add && is_safe_everywhere(block) && reads_values(tree, move.block.at);
  Expr condition = bool_imm(true);
  if (!before && !may_run_all) {
    auto masked = masked_instances(tree, move.block.at);
    // Loops without iterations give no bounds.
    if (!masked || !all_of(masked->box, [](const IntSet& s) { return s.is_bounded(); })) {
      return refuse(move.codes.instances,
                    "it cannot be proved which instances of " + describe(move.block) + " run where it stands now",
                    move.block, "simplify the loops around it, or move it earlier in the schedule");
    }
    before = std::move(masked->box);
    condition = std::move(masked->mask);
  }
  auto analyzer = analysis::analyzer_above(tree, move.loop.at);
  analysis::assume_runs_around(analyzer, tree, move.loop.at);
  std::vector<Ref<Var>> around{move.loop.loop().loop_var};
  for (int at : tree.loops_above(move.loop.at)) around.push_back(tree.for_at(at).loop_var);
  Nest nest(move.preserve_unit_loops, std::move(around), conditions_of(tree, move.block.at).invariant, analyzer);
  std::vector<IntSet> bounds;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    bounds.push_back(before ? (*before)[i] : IntSet::of_range(block.iter_vars[i]->dom));
    if (bounds.back().is_point()) bounds.back().max = bounds.back().min;
  }
  nest.add_axes(block.iter_vars, axes, bounds);
  nest.require(condition);
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

}  // namespace

Result<Plan> finish_move(const Move& move, const AxisSets& axes,
                         const std::function<Status(const Tree& after, int moved)>& also) {
  auto inputs_incomplete = [&](const Tree& tree, int at) -> Status {
    auto obstacle = analysis::why_inputs_incomplete(tree, at);
    if (!obstacle) return Ok{};
    return refuse(move.codes.inputs, *obstacle, kInputsIncomplete);
  };
  const Tree& tree = *move.block.tree;
  TW_RETURN_IF_ERROR(inputs_incomplete(tree, move.block.at));
  TW_TRY(root, relocate(move, axes));
  const Tree& after = Tree::of(root);
  const Block& block = move.block.block();
  int moved = after.block(block.id.value);
  TW_RETURN_IF_ERROR(check_order_of_steps(move, after, moved));
  TW_RETURN_IF_ERROR(inputs_incomplete(after, moved));
  if (also) TW_RETURN_IF_ERROR(also(after, moved));
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[move.block.at].scope);
  for (int child : scope.consumers(scope.child(block.id.value))) {
    int consumer = scope.position(after, child);
    for (const Ref<BufferRegion>& write : block.writes) {
      if (auto obstacle = analysis::why_not_covered(after, moved, consumer, write->buffer)) {
        return refuse(move.codes.results, *obstacle, kResultsMissing);
      }
    }
  }
  TW_RETURN_IF_ERROR(recheck_moved(after, moved, move.codes.execution));
  return give_loops(move.block.func, root, {});
}

}  // namespace tilewright::schedule
