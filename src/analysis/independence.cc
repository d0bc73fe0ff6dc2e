#include "analysis/independence.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>

#include "analysis/allocation_locations.h"
#include "analysis/atomic_block.h"
#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/disjoint_rows.h"
#include "analysis/findings.h"
#include "analysis/isolation.h"
#include "analysis/plain_store.h"
#include "analysis/reducer.h"
#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "analysis/threads.h"
#include "analysis/two_names.h"
#include "analysis/unsettled.h"
#include "arith/digits.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {
namespace {

/// The blocks directly below a loop, and what they do to one another's buffers.
class Below {
 public:
  explicit Below(const Tree& tree, int loop, int about = Tree::kNone)
      : tree_(tree), loop_(loop), about_(about), blocks_(tree.child_blocks(loop)) {}

  const std::vector<int>& blocks() const { return blocks_; }

  /// Treats all accesses of the block as atomic operations, whatever elements the iterations share.
  void take_as_atomic(int at) { atomic_.insert(at); }
  bool is_atomic(int at) const { return atomic_.contains(at); }

  /// Whether the query is about the buffer.
  bool concerns(const Ref<Buffer>& buffer) const {
    if (about_ == Tree::kNone) return true;
    const Block& block = tree_.block_at(about_);
    return tree_.touches(block.writes, buffer) || tree_.touches(block.reads, buffer) ||
           tree_.touches(binding_reads(tree_, about_), buffer);
  }

  /// A block before `at` writes the buffer.
  bool sets_before(int at, const Ref<Buffer>& buffer) const {
    return any_of(blocks_,
                  [&](int block) { return block < at && tree_.touches(tree_.block_at(block).writes, buffer); });
  }

  /// Threads of a block make a copy together (write_at), in memory that no other block below the loop touches: each of
  /// them stores what is there already, or what another one is about to store.
  bool is_joint_copy(int at, const Ref<Buffer>& buffer, const Execution& execution) const {
    if (!execution.axis || !execution.axis->in_team() || !tree_.block_at(at).annotations.has("auto_copy")) return false;
    return none_of(blocks_, [&](int other) {
      const Block& block = tree_.block_at(other);
      return other != at && (tree_.touches(block.writes, buffer) || tree_.touches(block.reads, buffer) ||
                             tree_.touches(binding_reads(tree_, other), buffer));
    });
  }

  std::optional<Dependent> check_statements() const {
    if (const NodeBase* bare = unsettled_statement_in(tree_, loop_)) {
      return Dependent{Conflict::kBareStatement,
                       {"a statement below loop '" + tree_.for_at(loop_).loop_var->name_hint +
                            "' is not in a block, so its accesses are unknown",
                        {tree_.stmt(loop_), NodeRef(bare)}}};
    }
    for (int at : blocks_) {
      const BlockFacts& facts = BlockFacts::of(tree_.block_ref(at));
      if (facts.role == BlockRole::kOther && !facts.scatters && !is_atomic(at)) {
        return Dependent{Conflict::kOtherBlock,
                         {quoted(tree_.block_at(at)) + " cannot run in any order: " + facts.why, {tree_.stmt(at)}}};
      }
      if (!is_unconditional(tree_, loop_, at) && !is_atomic(at)) {
        return Dependent{Conflict::kOtherBlock,
                         {quoted(tree_.block_at(at)) + " runs on a condition", {tree_.stmt(at)}}};
      }
      if (auto twice = why_two_names(tree_, at)) {
        return Dependent{Conflict::kOtherBlock, *std::move(twice)};
      }
      for (const Ref<BufferRegion>& read : binding_reads(tree_, at)) {
        if (!tree_.touches(tree_.block_at(at).writes, read->buffer)) continue;
        return Dependent{Conflict::kOtherBlock,
                         {"what " + quoted(tree_.block_at(at)) + " writes to '" + read->buffer->name +
                              "' decides where, or whether, it runs",
                          {tree_.stmt(at)}}};
      }
    }
    return std::nullopt;
  }

  /// Checks that each block reads only results that the same iteration has completed, and that none is overwritten.
  /// With `overwriting`, a complete block may overwrite elements that another block has just stored: the iteration
  /// leaves and reads the last values, while no other iteration touches these elements.
  std::optional<Dependent> check_flow(bool overwriting) const {
    for (size_t i : indices_of(blocks_)) {
      for (const Ref<BufferRegion>& write : tree_.block_at(blocks_[i]).writes) {
        if (!concerns(write->buffer)) continue;
        for (size_t j : indices_of(blocks_)) {
          if (i == j) continue;
          if (auto problem = check_pair(blocks_[i], blocks_[j], write->buffer, overwriting)) return problem;
        }
      }
    }
    return std::nullopt;
  }

 private:
  const AtomicUpdates& updates_of(int at) const { return AtomicUpdates::of(tree_.block_ref(at)); }
  bool updates_atomically(int at, const Ref<Buffer>& buffer) const {
    return is_atomic(at) && updates_of(at).agree(updates_of(at), buffer);
  }
  bool is_complete(int at) const { return BlockFacts::of(tree_.block_ref(at)).role == BlockRole::kComplete; }
  bool overwrites(int earlier, int later, const Ref<Buffer>& buffer) const {
    return is_complete(earlier) && is_complete(later) && tree_.touches(tree_.block_at(earlier).writes, buffer) &&
           !why_not_overwritten(tree_, earlier, later, buffer);
  }

  std::optional<Dependent> check_pair(int writer, int other, const Ref<Buffer>& buffer, bool overwriting) const {
    const Block &first = tree_.block_at(writer), &second = tree_.block_at(other);
    bool reads = tree_.touches(BlockFacts::of(tree_.block_ref(other)).live_in, buffer) ||
                 tree_.touches(binding_reads(tree_, other), buffer),
         writes = tree_.touches(second.writes, buffer);
    auto both = [&]() -> std::vector<NodeRef> { return {tree_.stmt(writer), tree_.stmt(other)}; };
    if (updates_atomically(writer, buffer) || updates_atomically(other, buffer)) {
      const bool agrees = updates_of(writer).agree(updates_of(other), buffer);
      if ((!reads && !writes) || agrees) return std::nullopt;
      return Dependent{Conflict::kWrite,
                       {quoted(first) + " and " + quoted(second) + " both use '" + buffer->name +
                            "', which one of them updates by atomic operations of any iteration",
                        both()}};
    }
    const bool decides =
        tree_.touches(binding_reads(tree_, writer), buffer) || tree_.touches(binding_reads(tree_, other), buffer);
    if (!decides && touch_disjoint_rows(tree_, writer, other, buffer)) return std::nullopt;
    if (writes) {
      // A pair of writers is one producer where the later one updates what the earlier has set.
      int earlier = std::min(writer, other), later = std::max(writer, other);
      bool update = BlockFacts::of(tree_.block_ref(later)).role == BlockRole::kUpdate && is_complete(earlier);
      if (!update && !(overwriting && overwrites(earlier, later, buffer))) {
        return Dependent{Conflict::kWrite,
                         {quoted(first) + " and " + quoted(second) + " both write '" + buffer->name + "'", both()}};
      }
    }
    if (!reads) return std::nullopt;
    if (other < writer) {
      if (writes) return std::nullopt;  // the later one of such a pair, seen from itself
      return Dependent{
          Conflict::kRead,
          {quoted(second) + " reads '" + buffer->name + "' before " + quoted(first) + " writes it", both()}};
    }
    // A later block has overwritten the elements that are read here: the overwriting block covers the read.
    for (int first : blocks_) {
      if (overwriting && first < writer && overwrites(first, writer, buffer)) return std::nullopt;
    }
    if (auto obstacle = why_not_covered(tree_, writer, other, buffer)) {
      return Dependent{Conflict::kRead, std::move(*obstacle)};
    }
    return std::nullopt;
  }

  const Tree& tree_;
  int loop_;
  int about_;
  std::vector<int> blocks_;
  std::set<int> atomic_;
};

/// Whether the loop, or one between it and the block, selects what the block writes other than through its axes:
/// B[vi + j], where only vi is an axis.
bool selects_by_loops(const Tree& tree, int loop, int block) {
  if (!why_not_isolated(tree, block, tree[loop].parent)) return false;
  auto selects = [&](const std::vector<Ref<BufferRegion>>& writes) {
    return any_of(writes, [&](const Ref<BufferRegion>& write) {
      for (int at = tree[block].parent; at >= loop && !tree[at].is_block; at = tree[at].parent) {
        if (tree[at].is_loop && uses_var(write, tree.for_at(at).loop_var)) return true;
      }
      return false;
    });
  };
  return selects(tree.block_at(block).writes) || selects(block_access_region(tree.block_ref(block)).writes);
}

/// Threads put together parts of several values that are computed together: the index and the value of a maximum, a sum
/// and a sum of squares. Of equal maxima, one stays.
bool threads_combine(const Block& block, const Execution& execution) {
  if (!execution.axis || execution.axis->level != ThreadAxis::Level::kThread) return false;
  const FoundReducer found = find_reducer(block);
  return found.reducer && !found.reducer->keeps_last();
}

/// Returns what is missing to run a reduction loop in this way. Nothing if the loop drives only a commutative reduction
/// of the block that has its own init and no loop below that repeats its steps, or that has no init: then lanes and
/// threads add to the present value.
Lacks what_reduction_lacks(const Tree& tree, int loop, int block, const Execution& execution) {
  const BlockRealize& realize = *tree.realize_at(block);
  const BlockFacts& facts = BlockFacts::of(realize.block);
  const bool update = facts.role == BlockRole::kUpdate;
  if (!execution.reduces()) return Lacks::kSpatialLoop;
  if (!update && facts.role != BlockRole::kReduction) return Lacks::kOperation;
  if (update && execution.axis && !find_accumulation(*realize.block).reducer) return Lacks::kOperation;
  if (!facts.commutative && !threads_combine(*realize.block, execution)) return Lacks::kOperation;
  if (facts.compound) return Lacks::kSingleSteps;
  if (selects_by_loops(tree, loop, block)) return Lacks::kAllSteps;
  bool reduces = false;
  for (size_t i : indices_of(realize.iter_values)) {
    if (!uses_var(realize.iter_values[i], tree.for_at(loop).loop_var)) continue;
    if (!is_reduction_axis(realize.block->iter_vars[i])) return Lacks::kAllSteps;
    reduces = true;
  }
  if (!reduces || update) return reduces ? Lacks::kNothing : Lacks::kAllSteps;
  // If loops around split the same axes, perhaps only all of them together can be proved to take each step once.
  const bool takes_each_once = !why_irregular_reduction(tree, tree[loop].parent, block) ||
                               !why_irregular_reduction(tree, tree[loop].scope, block);
  return takes_each_once ? Lacks::kNothing : Lacks::kAllSteps;
}

/// Whether an injective index that starts at 0 and grows with each loop is contiguous: its last value is one less than
/// the number of iterations. True for i * 4 + j, false for i + i.
bool ends_with_last(const Expr& sum, const arith::IterDomains& loops, arith::Analyzer& analyzer) {
  VarMap last;
  int64_t total = 1;
  for (const auto& [loop_var, range] : loops) {
    auto extent = const_int(range->extent);
    if (!extent || __builtin_mul_overflow(total, *extent, &total)) return false;
    if (*extent < 1) return true;
    last.emplace(loop_var, range->min + range->extent - one(range->extent.dtype()));
  }
  return is_const_int(analyzer.simplify(substitute(sum, last)), total - 1);
}

/// A sum of the values that counts all iterations of the loops from 0 on, each once; null where there is none.
Expr count_in(const std::vector<Expr>& values, const arith::IterDomains& loops, arith::Analyzer& analyzer) {
  Expr count;
  for (const Expr& value : values) {
    visit(value, [&](const Ref<Add>& sum, Visitor& v) {
      if (count.defined()) return;
      bool all = all_of(loops, [&](const auto& loop) { return uses_var(sum, loop.first); });
      if (!all) return;
      arith::IterMapResult map =
          arith::detect_iter_map({sum}, loops, {}, arith::IterMapLevel::kBijective, analyzer, true);
      if (map.ok() && is_const_int(map.indices[0].base, 0) && ends_with_last(sum, loops, analyzer)) {
        count = sum;
      } else {
        v.descend(sum);
      }
    });
  }
  return count;
}

/// The loops as digits of the number that is their sum; what needs only some of them may have left the others out:
/// (i * 128 + j) % 8 is j % 8. Nothing where the sum is not of that form.
std::optional<VarMap> digits_of(const Expr& sum, const Ref<Var>& number, const arith::IterDomains& loops,
                                arith::Analyzer& analyzer) {
  VarMap digits;
  Expr again = zero(sum.dtype());
  for (const auto& [loop_var, range] : loops) {
    VarMap only;
    for (const auto& [other, unused] : loops) {
      only.emplace(other, other == loop_var ? one(other.dtype()) : zero(other.dtype()));
    }
    Expr scale = analyzer.simplify(substitute(sum, only));
    if (!is_const_int(range->min, 0) || const_int(scale).value_or(0) < 1 || loop_var.dtype() != sum.dtype()) return {};
    again = again + loop_var * scale;
    digits.emplace(loop_var, floormod(floordiv(number, scale), range->extent));
  }
  if (!analyzer.can_prove_equal(sum, again)) return {};
  return digits;
}

/// One to one as functions of one number that the loops count together: what split() leaves of a map of one loop.
bool one_to_one_by_count(const std::vector<Expr>& values, const arith::IterDomains& loops, arith::Analyzer& analyzer) {
  Expr count = count_in(values, loops, analyzer);
  if (!count.defined()) return false;
  int64_t total = 1;
  for (const auto& [loop_var, range] : loops) {
    auto extent = const_int(range->extent);
    if (!extent || __builtin_mul_overflow(total, *extent, &total)) return false;
  }
  if (total == 0) return true;
  if (total > int_max(count.dtype())) return false;
  Ref<Var> number = var("count", count.dtype());
  arith::IterDomains domain = {{number, range(zero(count.dtype()), int_imm(count.dtype(), total))}};
  analyzer.bind(number, domain[0].second);
  auto digits = digits_of(count, number, loops, analyzer);
  if (!digits) return false;
  std::vector<Expr> of_number;
  for (const Expr& value : values) {
    Expr counted = rewrite(value, [&](const Ref<Add>& sum, Rewriter& r) -> Expr {
      return same_expr(sum, count) ? Expr(number) : Expr(r.descend(sum));
    });
    of_number.push_back(analyzer.simplify(substitute(counted, *digits)));
  }
  return arith::detect_iter_map(of_number, domain, {}, arith::IterMapLevel::kBijective, analyzer).ok();
}

/// One to one in parts that share no loop, each by itself or by what its loops count.
bool parts_one_to_one(const std::vector<Expr>& values, arith::IterDomains loops, arith::Analyzer& analyzer) {
  while (!loops.empty()) {
    arith::IterDomains part{loops.back()}, rest(loops.begin(), loops.end() - 1);
    std::vector<Expr> used;
    auto joins = [&](const Expr& value) {
      bool known = any_of(used, [&](const Expr& e) { return e == value; });
      return !known && any_of(part, [&](const auto& l) { return uses_var(value, l.first); });
    };
    for (auto value = find_if(values, joins); value != values.end(); value = find_if(values, joins)) {
      used.push_back(*value);
      auto moved = std::stable_partition(rest.begin(), rest.end(),
                                         [&](const auto& loop) { return !uses_var(*value, loop.first); });
      part.insert(part.end(), moved, rest.end());
      rest.erase(moved, rest.end());
    }
    arith::IterMapResult map;
    if (!is_one_to_one(used, part, bool_imm(true), analyzer, &map) && !one_to_one_by_count(used, part, analyzer)) {
      return false;
    }
    loops = std::move(rest);
  }
  return true;
}

/// Injectivity of a block's axes in terms of digits, kept from one version of the program to the next: most steps
/// change neither the axes of a block nor the loops around it.
class AxesByLoops : public Memo::Fact {
 public:
  static arith::Injectivity find_or_compute(const BlockRealize& realize, arith::Counters counters) {
    const AxesByLoops& known = realize.block->id.memo.get<AxesByLoops>([] { return AxesByLoops(); });
    {
      std::lock_guard lock(known.mutex_);
      for (const Answer& answer : known.answers_) {
        if (answer.values == realize.iter_values && same(answer.counters, counters)) return answer.result;
      }
    }
    const arith::Injectivity result = arith::injectivity_of(realize.iter_values, counters);
    std::lock_guard lock(known.mutex_);
    if (known.answers_.size() == kMost) known.answers_.erase(known.answers_.begin());
    known.answers_.push_back({realize.iter_values, std::move(counters), result});
    return result;
  }

 private:
  struct Answer {
    std::vector<Expr> values;  ///< which hold the variables of the counters
    arith::Counters counters;
    arith::Injectivity result;
  };
  static constexpr size_t kMost = 4;

  static bool same(const arith::Counters& a, const arith::Counters& b) {
    return std::ranges::equal(
        a, b, [](const arith::Counter& x, const arith::Counter& y) { return x.var == y.var && x.extent == y.extent; });
  }

  mutable std::mutex mutex_;
  mutable std::vector<Answer> answers_;
};

/// Whether an index moves by one with each step of a loop, forwards or backwards, and with no other of the loops:
/// n - 1 - i.
bool moves_with(const Expr& index, const Ref<Var>& loop_var, const std::function<bool(const Ref<Var>&)>& is_loop) {
  if (index == Expr(loop_var)) return true;
  const Add* sum = index.as<Add>();
  const Sub* difference = index.as<Sub>();
  if ((!sum && !difference) || !index.dtype().is_int()) return false;
  const Expr &a = sum ? sum->a : difference->a, &b = sum ? sum->b : difference->b;
  const bool a_stays = !uses_any_var(a, is_loop), b_stays = !uses_any_var(b, is_loop);
  return (b_stays && moves_with(a, loop_var, is_loop)) || (a_stays && moves_with(b, loop_var, is_loop));
}

/// Whether for each of the loops there is an axis from which it follows: whatever the sizes are.
bool each_moves_an_axis(const Tree& tree, const std::vector<int>& loops, const std::vector<Expr>& values) {
  const auto is_loop = [&](const Ref<Var>& v) {
    return any_of(loops, [&](int at) { return v == tree.for_at(at).loop_var; });
  };
  return all_of(loops, [&](int at) {
    return any_of(values, [&](const Expr& value) {
      return effect_of(value) == Effect::kPure && moves_with(value, tree.for_at(at).loop_var, is_loop);
    });
  });
}

}  // namespace

bool axes_are_injective(const Tree& tree, std::vector<int> loops, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  PlainStore seen;
  std::vector<const NodeBase*>& used = seen.vars;
  used.reserve(2 * realize.iter_values.size() + loops.size());
  for (const Expr& value : realize.iter_values) {
    if (value.depth() <= kInlineDepth && seen.collect(value)) continue;
    uses_any_var(value, [&](const Ref<Var>& v) {
      used.push_back(v.get());
      return false;
    });
  }
  std::erase_if(loops, [&](int at) { return !is_contained(used, tree.for_at(at).loop_var.get()); });
  if (loops.empty()) return false;
  if (auto counters = counters_of(tree, loops)) {
    arith::Injectivity known = AxesByLoops::find_or_compute(realize, std::move(*counters));
    if (known == arith::Injectivity::kYes) return true;
    if (known == arith::Injectivity::kNo && is_true(realize.predicate)) return false;
  }
  arith::IterDomains inputs = inputs_of(tree, loops);
  auto analyzer = analyzer_above(tree, tree[loops.front()].parent);
  assume_runs(analyzer, tree, loops);
  arith::IterMapResult map;
  return is_one_to_one(realize.iter_values, inputs, realize.predicate, analyzer, &map) ||
         parts_one_to_one(realize.iter_values, inputs, analyzer) ||
         each_moves_an_axis(tree, loops, realize.iter_values);
}

namespace {

/// Different iterations of the loop make the block write disjoint elements.
bool writes_disjoint(const Tree& tree, int loop, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  bool drives =
      any_of(realize.iter_values, [&](const Expr& value) { return uses_var(value, tree.for_at(loop).loop_var); });
  if (!drives || selects_by_loops(tree, loop, block)) return false;
  // A map that is injective in all loops is so for fixed outer loops: (a * 32 + b) // 40 and (a * 32 + b) % 40 are
  // digits of one number, but not of b alone.
  const bool around = tree.contains(loop, block) && tree[loop].scope == tree[block].scope;
  const bool is_injective =
      around && Findings::of(tree).answer({Findings::Question::kInjective, block, 0, nullptr},
                                          [&] { return axes_are_injective(tree, tree.loops_above(block), block); });
  if (is_injective) return true;
  std::vector<int> inner = {loop};
  if (auto between = loops_between(tree, loop, block)) append_range(inner, *between);
  if (around && tree.loops_above(block).size() == inner.size()) return false;
  return axes_are_injective(tree, inner, block);
}

}  // namespace

Execution Execution::of(const For& loop) { return {loop.kind, thread_axis(loop)}; }

bool Execution::can_own(const Ref<Buffer>& buffer) const {
  return kind == ForKind::kParallel || (axis && !memory_scope(buffer->scope()).is_shared_by(*axis));
}

bool Execution::can_agree(const Ref<Buffer>& buffer, const Expr& extent) const {
  return axis && memory_scope(buffer->scope()).joins_threads(*axis, const_int(extent).value_or(-1));
}

namespace {

/// A buffer that a block below allocates for each of its instances is one for all threads that share such memory.
std::optional<Dependent> check_allocations(const Tree& tree, int loop, const Execution& execution) {
  for (int at = loop + 1; execution.axis && at < tree[loop].end; ++at) {
    if (!tree[at].is_block) continue;
    for (const Ref<Buffer>& buffer : tree.block_at(at).alloc_buffers) {
      const MemoryScope& scope = memory_scope(buffer->scope());
      if (scope.rank == 0 || !scope.is_shared_by(*execution.axis)) continue;
      return Dependent{Conflict::kWrite,
                       {quoted(tree.block_at(at)) + " allocates '" + buffer->name +
                            "' for each of its instances, and the iterations of loop '" +
                            tree.for_at(loop).loop_var->name_hint + "' would share it",
                        {tree.stmt(loop), tree.stmt(at)}}};
    }
  }
  return std::nullopt;
}

/// Whether only atomic operations let the iterations run at the same time: the block makes no others, and iterations
/// may meet in its elements. Lanes of a vector put their steps together instead.
bool needs_atomics(const Tree& tree, int loop, int block, const Execution& execution) {
  const Ref<Block>& node = tree.block_ref(block);
  const bool at_once = execution.kind == ForKind::kParallel || execution.axis;
  if (!at_once || AtomicUpdates::of(node).empty()) return false;
  const BlockFacts& facts = BlockFacts::of(node);
  if (!facts.undeclared.empty()) return false;
  // Threads that each have a copy of the buffer do not meet there.
  const bool is_met = all_of(node->writes, [&](const Ref<BufferRegion>& write) {
    return !execution.axis || memory_scope(write->buffer->scope()).is_shared_by(*execution.axis);
  });
  if (!is_met) return false;
  if (facts.role == BlockRole::kOther && !facts.scatters) return true;
  const BlockRealize& realize = *tree.realize_at(block);
  for (size_t i : indices_of(realize.iter_values)) {
    const bool drives = uses_var(realize.iter_values[i], tree.for_at(loop).loop_var);
    if (drives && is_reduction_axis(realize.block->iter_vars[i])) return true;
  }
  return !writes_disjoint(tree, loop, block);
}

}  // namespace

std::optional<Dependent> why_dependent(const Tree& tree, int loop, Execution execution, int about) {
  // Lanes of a vector share all buffers.
  bool in_lanes = false;
  for (int at = tree[loop].parent; at != Tree::kNone; at = tree[at].parent) {
    in_lanes |= tree[at].is_loop && tree.for_at(at).kind == ForKind::kVectorized;
  }
  Below below(tree, loop, about);
  for (int at : below.blocks()) {
    if (needs_atomics(tree, loop, at, execution)) below.take_as_atomic(at);
  }
  if (auto problem = below.check_statements()) return problem;
  const Ref<Var>& loop_var = tree.for_at(loop).loop_var;
  auto name = [&] { return "loop '" + loop_var->name_hint + "'"; };
  for (int at : below.blocks()) {
    if (below.is_atomic(at)) continue;
    const BlockRealize& realize = *tree.realize_at(at);
    for (size_t i : indices_of(realize.iter_values)) {
      const Ref<IterVar>& axis = realize.block->iter_vars[i];
      if (!is_reduction_axis(axis) || !uses_var(realize.iter_values[i], loop_var)) continue;
      const Lacks lacks = what_reduction_lacks(tree, loop, at, execution);
      if (lacks == Lacks::kNothing) continue;
      return Dependent{
          Conflict::kReduction,
          {name() + " drives the reduction axis '" + axis->var->name_hint + "' of " + quoted(*realize.block),
           {tree.stmt(loop), tree.stmt(at)}},
          lacks};
    }
  }
  if (is_const_int(tree.for_at(loop).extent, 1)) return std::nullopt;
  if (auto problem = check_allocations(tree, loop, execution)) return problem;
  for (int at : below.blocks()) {
    if (below.is_atomic(at)) continue;
    const BlockRealize& realize = *tree.realize_at(at);
    const auto& writes = realize.block->writes;
    if (none_of(writes, [&](const auto& write) { return below.concerns(write->buffer); })) {
      continue;
    }
    if (writes_disjoint(tree, loop, at) || what_reduction_lacks(tree, loop, at, execution) == Lacks::kNothing) continue;
    const BlockFacts& facts = BlockFacts::of(realize.block);
    const bool accumulates = facts.role == BlockRole::kUpdate || facts.scatters;
    for (const Ref<BufferRegion>& write : writes) {
      // An update carries values from one iteration to the next, unless another block below sets them each time.
      bool carries = accumulates && !below.sets_before(at, write->buffer);
      bool owns = execution.can_own(write->buffer) && !in_lanes;
      if (owns && !carries && is_private_to(tree, loop, write->buffer)) continue;
      // Instances of a complete block that store to one element are one instance, and store one value.
      bool same = facts.role == BlockRole::kComplete && !why_not_isolated(tree, at, tree[loop].parent);
      if (same && execution.can_agree(write->buffer, tree.for_at(loop).extent)) continue;
      if (same && below.is_joint_copy(at, write->buffer, execution)) continue;
      return Dependent{Conflict::kWrite,
                       {"different iterations of " + name() + " may write the same elements of '" +
                            write->buffer->name + "' in " + quoted(*realize.block),
                        {tree.stmt(loop), tree.stmt(at)}}};
    }
  }
  // Threads that fill one memory together store the same values, but not at the same time.
  return below.check_flow(execution.kind != ForKind::kThreadBinding);
}

std::optional<Dependent> why_order_matters(const Tree& tree, const std::vector<int>& loops) {
  Below below(tree, loops.back());
  if (auto problem = below.check_statements()) return problem;
  int from = tree[loops.front()].parent;
  for (int at : below.blocks()) {
    if (auto obstacle = why_irregular_reduction(tree, from, at)) {
      return Dependent{Conflict::kOtherBlock, std::move(*obstacle)};
    }
  }
  return below.check_flow(false);
}

}  // namespace tilewright::analysis
