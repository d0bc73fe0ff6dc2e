// Split loops into a prologue, a steady state without conditions, and an epilogue, as TVM's LoopPartition.
//
//   Before                               After
//   for i in range(17):                  for i in range(16):
//     for a in range(6):                   for a in range(6):
//       if i * 6 + a < 100:                  B[i * 6 + a] = 0.0
//         B[i * 6 + a] = 0.0             for a in range(4):
//                                          B[a + 96] = 0.0
//
// A condition 0 <= p * i + q(a) with a constant p holds for all inner iterations a if i is beyond (or up to) one value,
// where the loop is split, and for no a if i is beyond (or up to) another value. Iterations without effect are removed.
// A parallel loop is not split; its body branches. A vectorized loop is only shortened, since its remainder is a mask.
// An unrolled loop is split only at a constant iteration. Thread-bound loops are not changed, since all loops of a
// kernel run on the same number of threads.
//
// The annotation "pragma_loop_partition_hint" of a loop overrides the criteria: 0 keeps conditions in the loop, which
// costs a mask or branch per iteration but no copy of the body; 1 splits the loop, however large its body is.
//
// Needs      no blocks: predicates are conditions
// Ensures    conditions that always hold are removed; those that never hold are removed with their statements
// Placement  before vectorize_loops, which turns the conditions that are left into masks
#include <algorithm>

#include "arith/int_set.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/cut_loops.h"
#include "lower/passes.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Bodies larger than this are not duplicated: each copy costs build time.
constexpr int64_t kMostNodes = 4000;
/// Work limit, in visited variables of conditions: each loop of a nest visits those inside of it several times. A
/// padded convolution with four levels of tiles that do not divide takes 210,000. Beyond the limit, loops stay
/// unchanged.
constexpr int64_t kMostWork = 400'000;

int64_t count_nodes(const Stmt& s) {
  int64_t count = 0;
  visit(
      s, [&](const Ref<BufferLoad>&) { ++count; }, on<BufferStore, For>([&](const auto&) { count += 2; }),
      on<IfThenElse, Call>([&](const auto&) { ++count; }));
  return count;
}

/// Iterations [low, high) of a loop satisfy `atoms`; a null end is the loop's own.
struct Split {
  Expr low, high;
  std::vector<Expr> atoms;
};

class Partitioner : private LoopCutter {
 public:
  Partitioner(const PrimFunc& func, const Target& target) : LoopCutter(func), target_(target) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return partition(loop, r); },
        [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt { return simplify_branch(*branch, r); },
        [&](const Ref<SeqStmt>& all, Rewriter& r) -> Stmt { return seq(r.descend(all)->seq); },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          note(*let);
          return r.descend(let);
        },
        on<Allocate, DeclBuffer>([&](const auto& node, Rewriter& r) -> Stmt { return unless_idle(r.descend(node)); }));
  }

 private:
  template <class T>
  static Stmt unless_idle(const Ref<T>& node) {
    return is_nop(node->body) ? nop() : Stmt(node);
  }

  Stmt simplify_branch(const IfThenElse& branch, Rewriter& r) {
    Expr remainder = bool_imm(true), known = bool_imm(true);
    for (const Expr& atom : conjuncts(branch.condition)) {
      if (variables_.is_decidable(atom)) {
        known = logical_and(known, atom);
        if (analyzer_.can_prove(atom)) continue;
        if (analyzer_.can_prove(logical_not(atom))) return branch.else_case.defined() ? r(branch.else_case) : nop();
      }
      remainder = logical_and(remainder, atom);
    }
    if (is_true(remainder)) return r(branch.then_case);
    Stmt then_case;
    {
      auto scope = analyzer_.constraint(known);
      then_case = r(branch.then_case);
    }
    Stmt else_case = branch.else_case.defined() ? r(branch.else_case) : Stmt();
    if (is_nop(then_case) && (!else_case.defined() || is_nop(else_case))) return nop();
    return make<IfThenElse>({remainder, then_case, else_case});
  }

  // ---- loops

  Stmt partition(const Ref<For>& whole, Rewriter& r) {
    Expr extent = analyzer_.simplify(whole->extent);
    if (auto known = const_int(extent); known && *known <= 0) return nop();
    if (work_ > kMostWork) return rebuild(whole, whole->min, extent, whole->body, r);
    Expr end = analyzer_.simplify(whole->min + extent);
    if (whole->kind == ForKind::kVectorized) return shorten(whole, end, r);
    bool of_threads = whole->kind == ForKind::kThreadBinding;
    Ref<For> loop = of_threads ? whole : trim(whole, r);
    if (loop != whole) {
      extent = loop->extent;
      end = analyzer_.simplify(loop->min + extent);
      if (is_const_int(extent, 1)) return r(first_iteration(*loop));
    }
    Split split = find_split(*loop, end);
    // An unrolled loop keeps a constant trip count, because indices of registers must be constants.
    auto moves = [](const Expr& border) { return border.defined() && !const_int(border); };
    if (loop->kind == ForKind::kUnrolled && const_int(extent) && (moves(split.low) || moves(split.high))) split = {};
    if (of_threads && (split.low.defined() || split.high.defined())) split = {};
    // In lockstep threads, a condition costs less than two loops of different lengths. With a barrier in the loop,
    // threads must not leave it at different iterations.
    if (target_.is_in(TargetSet::kGpu) && (moves(split.low) || moves(split.high))) split = {};
    if (split.atoms.empty()) return rebuild(loop, loop->min, extent, loop->body, r);
    Stmt clean = drop_atoms(loop->body, split.atoms);
    if (!split.low.defined() && !split.high.defined()) return rebuild(loop, loop->min, extent, clean, r);
    if (loop->kind == ForKind::kParallel) {
      Stmt edges = renew_defs(loop->body);
      const bool only_last = !split.low.defined() && analyzer_.can_prove_equal(split.high + 1, end);
      if (only_last) edges = substitute_folding(edges, loop->loop_var, split.high);
      return branch(loop, split.low, split.high, clean, edges, r);
    }
    std::vector<Stmt> parts;
    Expr low = split.low.defined() ? split.low : loop->min;
    Expr high = split.high.defined() ? split.high : end;
    if (split.low.defined()) parts.push_back(piece(loop, loop->min, low, loop->body, true, r));
    parts.push_back(piece(loop, low, high, clean, false, r));
    if (split.high.defined()) parts.push_back(piece(loop, high, end, loop->body, true, r));
    return seq(std::move(parts));
  }

  Stmt rebuild(const Ref<For>& loop, const Expr& min, const Expr& extent, const Stmt& body, Rewriter& r) {
    For copy = *loop;
    copy.min = min;
    copy.extent = extent;
    copy.body = inside(copy, [&] { return r(body); });
    if (is_nop(copy.body)) return nop();
    return make(std::move(copy), loop.span());
  }

  /// Returns the loop over [low, high) with this body.
  Stmt piece(const Ref<For>& loop, const Expr& low, const Expr& high, const Stmt& body, bool is_copy, Rewriter& r) {
    Expr extent = analyzer_.simplify(high - low);
    arith::ConstIntBound bound = analyzer_.const_int_bound(extent);
    if (bound.max_value <= 0) return nop();
    For copy = *part_of(loop, low, extent);
    copy.body = body;
    Ref<For> part = make(std::move(copy), loop.span());
    if (is_copy) {
      part = trim(renew_defs(part).cast<For>(), r);
      bound = analyzer_.const_int_bound(part->extent);
    }
    if (bound.max_value > 1) return rebuild(part, part->min, part->extent, part->body, r);
    // The part has at most one iteration.
    Stmt once = r(first_iteration(*part));
    if (bound.min_value >= 1 || is_nop(once)) return once;
    Expr runs = analyzer_.simplify(gt(extent, 0));
    // If the inner loop is empty whenever the condition is false, no condition is needed.
    if (const For* inner = once.as<For>()) {
      auto scope = analyzer_.constraint(logical_not(runs));
      if (analyzer_.can_prove(le(inner->extent, 0))) return once;
    }
    return make<IfThenElse>({runs, once, {}});
  }

  /// Shortens a vectorized loop whose last lanes are always masked, if whole registers or a power of two remain.
  Stmt shorten(const Ref<For>& loop, const Expr& end, Rewriter& r) {
    Split split = find_split(*loop, end);
    bool cut = !split.atoms.empty() && split.high.defined() && !split.low.defined();
    auto first = const_int(loop->min), last = const_int(end), high = const_int(cut ? split.high : end);
    if (!cut || !first || !high || !last || *high <= *first) {
      return rebuild(loop, loop->min, loop->extent, loop->body, r);
    }
    if (!is_idle(loop, *high, *last, r)) return rebuild(loop, loop->min, loop->extent, loop->body, r);
    int64_t needed = *high - *first, lanes = vector_lanes(target_, 32), size = 1;
    while (size < needed && size < lanes) size *= 2;
    if (needed > lanes) size = (needed + lanes - 1) / lanes * lanes;
    size = std::min(size, *last - *first);
    const Stmt& body = size == needed ? drop_atoms(loop->body, split.atoms) : loop->body;
    return rebuild(loop, loop->min, int_imm(loop->extent.dtype(), size), body, r);
  }

  /// Returns the part [from, to) of a loop with constant bounds.
  static Ref<For> between(const Ref<For>& loop, int64_t from, int64_t to) {
    return part_of(loop, int_imm(loop->min.dtype(), from), int_imm(loop->extent.dtype(), to - from));
  }

  /// Whether these iterations have no effect.
  bool is_idle(const Ref<For>& loop, int64_t from, int64_t to, Rewriter& r) {
    Ref<For> part = renew_defs(between(loop, from, to)).cast<For>();
    return is_nop(rebuild(part, part->min, part->extent, part->body, r));
  }

  /// Returns the iterations [from, to) in which one of the conditions may hold.
  struct Alive {
    int64_t from, to;
  };

  /// Removes iterations without effect at the ends of the loop.
  Ref<For> trim(const Ref<For>& loop, Rewriter& r) {
    auto min = const_int(loop->min), extent = const_int(loop->extent);
    if (!min || !extent || *extent < 2 || count_nodes(loop->body) > kMostNodes) return loop;
    int64_t end = *min + *extent;
    Alive alive{end, *min};
    walk_atoms(*loop, [&](const Expr& atom, const Inside& around) { note_alive(atom, loop->loop_var, around, alive); });
    // A kind of condition may give no bound at one end.
    int64_t low = alive.from > *min && alive.from < end ? alive.from : *min;
    int64_t high = alive.to > low && alive.to < end ? alive.to : end;
    if (high < end && !is_idle(loop, high, end, r)) high = end;
    if (low > *min && !is_idle(loop, *min, low, r)) low = *min;
    analyzer_.bind(loop->loop_var, range(loop->min, loop->extent));
    return low == *min && high == end ? loop : between(loop, low, high);
  }

  void note_alive(const Expr& atom, const Ref<Var>& v, const Inside& around, Alive& alive) {
    auto line = line_of(atom, v, around, false, analyzer_, variables_);
    auto border = line ? line->const_border() : std::nullopt;
    if (!border) return;
    if (line->p < 0) {
      alive.to = std::max(alive.to, *border);
    } else {
      alive.from = std::min(alive.from, *border);
    }
  }

  static Stmt drop_atoms(const Stmt& body, const std::vector<Expr>& atoms) {
    return rewrite(body, [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt {
      Ref<IfThenElse> inner = r.descend(branch);
      Expr remainder = bool_imm(true);
      bool dropped = false;
      for (const Expr& part : conjuncts(branch->condition)) {
        bool known = is_contained(atoms, part);
        dropped |= known;
        if (!known) remainder = logical_and(remainder, part);
      }
      if (!dropped) return inner;
      if (is_true(remainder)) return inner->then_case;
      return make<IfThenElse>({remainder, inner->then_case, inner->else_case}, branch.span());
    });
  }

  // ---- where to split

  Split find_split(const For& loop, const Expr& end) {
    Split split;
    if (!partition_hint(loop).value_or(count_nodes(loop.body) <= kMostNodes)) return split;
    if (auto extent = const_int(loop.extent); extent && *extent < 2) return split;
    walk_atoms(loop, [&](const Expr& atom, const Inside& around) { consider(atom, around, loop, end, split); });
    if (split.low.defined() && split.high.defined() && !analyzer_.can_prove_less_equal(split.low, split.high)) {
      split.high = analyzer_.simplify(max(split.low, split.high));
    }
    return split;
  }

  /// Calls `use` for the parts of all conditions in the loop.
  template <class F>
  void walk_atoms(const For& loop, const F& use) {
    auto look = [&](const Expr& condition, const Inside& around) {
      for (const Expr& atom : conjuncts(condition)) {
        use(atom, around);
        ++work_;
        visit(atom, [&](const Ref<Var>&) { ++work_; });
      }
    };
    walk(loop, look, [](const BufferStore&, const Inside&) {});
  }

  void consider(const Expr& atom, const Inside& around, const For& loop, const Expr& end, Split& split) {
    auto line = line_of(atom, loop.loop_var, around, true, analyzer_, variables_);
    if (!line) return;
    if (line->p < 0) {
      Expr high = analyzer_.simplify(line->border());
      if (analyzer_.can_prove_less_equal(high, loop.min)) return;  // holds for no iteration as a whole
      if (!analyzer_.can_prove_less_equal(end, high)) {
        high = clip(high, loop.min, end);
        split.high = split.high.defined() ? analyzer_.simplify(min(split.high, high)) : high;
      }
    } else {
      Expr low = analyzer_.simplify(line->border());
      if (analyzer_.can_prove_less_equal(end, low)) return;
      if (!analyzer_.can_prove_less_equal(low, loop.min)) {
        low = clip(low, loop.min, end);
        split.low = split.low.defined() ? analyzer_.simplify(max(split.low, low)) : low;
      }
    }
    split.atoms.push_back(atom);
  }

  /// Clamps the value to the range of the loop, in the type of its variable.
  Expr clip(const Expr& value, const Expr& low, const Expr& high) {
    Expr result = value;
    if (!analyzer_.can_prove_less_equal(low, result)) result = max(low, result);
    if (!analyzer_.can_prove_less_equal(result, high)) result = min(result, high);
    return analyzer_.simplify(cast(low.dtype(), result));
  }

  const Target& target_;
  int64_t work_ = 0;  ///< work done, as kMostWork counts it
};

}  // namespace

PassResult partition_loops(const Ref<PrimFunc>& func, PassContext& context) {
  if (!has_node<IfThenElse>(func->body)) return func;
  return with_body(func, Partitioner(*func, context.target).run(func->body));
}

}  // namespace tilewright::lower
