// Peel the iterations at the edges of loops, so that conditions and clamped indices in stored values are constant in
// the main loop.
//
//   Before                                                  After
//   for j in range(64):                                     B[0] = A[0] + A[0]
//     B[j] = A[T.max(j - 1, 0)] + A[j]                      for j in range(63):
//                                                             B[j + 1] = A[j] + A[j + 1]
//
// So the main loops of stencils have no boundary conditions, whether the boundary is clamped, zero (if_then_else) or
// periodic ((j + 1) % 64). Stored values and their order do not change. A parallel loop is not split; its body
// branches. Unrolled and short loops are not peeled, nor loops over registers, which would need vectors of many widths,
// nor large bodies, since each copy costs build time. The annotation "pragma_loop_partition_hint" of a loop overrides
// these criteria: 0 disables peeling, 1 forces it.
//
// Needs      flat buffers
// Ensures    conditions in values, and clamps of indices, that always hold in the main loop are removed there
// Placement  before simplify_indices and vectorize_plain_loops, which see plain indices between the edges
#include <algorithm>

#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/op.h"
#include "lower/loops/cut_loops.h"
#include "lower/passes.h"
#include "lower/vector/vector_math.h"

namespace tilewright::lower {
namespace {

/// Maximum number of accesses in a copied body, and in all copies together.
constexpr int64_t kMostPeeledAccesses = 120, kMostCopied = 1500;
/// Minimum trip count of a loop, and minimum number of full vectors of a vectorized loop.
constexpr int64_t kFewestIterations = 8, kFewestVectors = 4;
/// Periodic indices are peeled if the loop has at least this many times the iterations of the edge.
constexpr int64_t kLeastBetween = 4;

bool is_lazy(const Call& call) { return intrinsic_of(call) == Intrinsic::k_if_then_else; }

/// Maximum depth of analyzed conditions and indices, because the analysis time grows with their size.
constexpr uint32_t kDeepestCondition = 64;

/// The comparison by which a min or max selects its operand.
Expr winner_moves(const Expr& a, const Expr& b, bool greater, const Ref<Var>& v) {
  const Expr &moves = uses_var(a, v) ? a : b, &stays = uses_var(a, v) ? b : a;
  return greater ? ge(moves, stays) : le(moves, stays);
}

class Peeler : private LoopCutter {
 public:
  Peeler(const PrimFunc& func, const Target& target) : LoopCutter(func), target_(target) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return peel(loop, r); },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          note(*let);
          return r.descend(let);
        },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return around_ ? decided(store) : Stmt(store); });
  }

 private:
  /// Iterations of a loop.
  struct Part {
    int64_t from, to;
  };

  Stmt peel(const Ref<For>& loop, Rewriter& r) {
    auto min = const_int(loop->min), extent = const_int(loop->extent);
    if (!min || !extent || *extent < 1 || !may_peel(*loop, *extent)) return whole(loop, r);
    const Part all{*min, *min + *extent}, inner = between_edges(*loop, all);
    if (inner.from == all.from && inner.to == all.to) return whole(loop, r);
    copied_ += accesses(loop->body) * ((inner.from > all.from) + (inner.to < all.to));
    ++around_;
    Stmt result;
    if (loop->kind == ForKind::kParallel) {
      auto border = [&](int64_t at, int64_t end) { return at == end ? Expr() : int_imm(loop->loop_var.dtype(), at); };
      result =
          branch(loop, border(inner.from, all.from), border(inner.to, all.to), loop->body, renew_defs(loop->body), r);
    } else {
      std::vector<Stmt> parts;
      if (inner.from > all.from) parts.push_back(part(loop, {all.from, inner.from}, true, r));
      parts.push_back(part(loop, inner, false, r));
      if (inner.to < all.to) parts.push_back(part(loop, {inner.to, all.to}, true, r));
      result = seq(std::move(parts));
    }
    --around_;
    return result;
  }

  bool may_peel(const For& loop, int64_t extent) {
    if (loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kThreadBinding) return false;
    if (auto hint = partition_hint(loop)) return *hint;
    int64_t fewest = kFewestIterations;
    if (loop.kind == ForKind::kVectorized) fewest = kFewestVectors * vector_lanes(target_, widest_element(loop.body));
    if (extent < fewest) return false;
    if (counts_registers(loop)) return false;
    const int64_t count = accesses(loop.body);
    return count <= kMostPeeledAccesses && copied_ + 2 * count <= kMostCopied;
  }

  /// Whether iterations store to different registers.
  static bool counts_registers(const For& loop) {
    return any_node(loop.body, [&](const Ref<BufferStore>& store) {
      return is_local(*store->buffer) && uses_var(store->indices[0], loop.loop_var);
    });
  }

  /// Counts the accesses after unrolling.
  static int64_t accesses(const Stmt& body) {
    int64_t count = 0, copies = 1;
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          const int64_t outer = copies;
          const int64_t extent = std::clamp<int64_t>(const_int(loop->extent).value_or(1), 1, kMostCopied);
          if (loop->kind == ForKind::kUnrolled) copies = std::min(copies * extent, kMostCopied);
          v.descend(loop);
          copies = outer;
        },
        on<BufferLoad, BufferStore>([&](const auto&) { count += copies; }));
    return count;
  }

  Stmt whole(const Ref<For>& loop, Rewriter& r) {
    return inside(*loop, [&] { return r.descend(loop); });
  }

  /// Returns these iterations as a loop, which may contain other edges.
  Stmt part(const Ref<For>& loop, Part which, bool is_copy, Rewriter& r) {
    Ref<For> piece =
        part_of(loop, int_imm(loop->min.dtype(), which.from), int_imm(loop->extent.dtype(), which.to - which.from));
    if (is_copy) piece = renew_defs(piece).cast<For>();
    return which.to - which.from > 1 ? peel(piece, r) : r(first_iteration(*piece));
  }

  // ---- positions of the edges

  Part between_edges(const For& loop, Part all) {
    Part inner = all;
    auto consider = [&](const Expr& atom, const Inside& around) {
      if (atom.depth() > kDeepestCondition) return;
      auto line = line_of(atom, loop.loop_var, around, true, analyzer_, variables_);
      auto border = line ? line->const_border() : std::nullopt;
      if (!border || *border <= all.from || *border >= all.to) return;
      if (line->p > 0) {
        inner.from = std::max(inner.from, *border);
      } else {
        inner.to = std::min(inner.to, *border);
      }
    };
    // A periodic index that wraps around once, near an end of the loop: (i + 7) % n.
    auto consider_wrap = [&](const Expr& dividend, const Expr& divisor, const Inside& around) {
      const bool is_known = dividend.dtype().is_int() && dividend.depth() <= kDeepestCondition;
      auto turns = is_known ? turns_of(dividend, divisor) : std::nullopt;
      if (!turns || turns->second != turns->first + 1) return;
      const Expr wrap = int_imm(dividend.dtype(), turns->second * *const_int(divisor));
      auto line = line_of(ge(dividend, wrap), loop.loop_var, around, true, analyzer_, variables_);
      auto crossed = line ? line->const_border() : std::nullopt;
      if (!crossed) return;
      const int64_t before = *crossed - all.from, after = all.to - *crossed;
      if (std::min(before, after) * kLeastBetween > all.to - all.from) return;
      consider((before < after) == (line->p > 0) ? ge(dividend, wrap) : lt(dividend, wrap), around);
    };
    auto look = [&](const Expr& value, const Inside& around) {
      auto consider_all = [&](const Expr& condition) {
        for_each_atom(condition, [&](const Expr& atom) { consider(atom, around); });
      };
      visit(
          value,
          [&](const Ref<Call>& call) {
            if (is_lazy(*call)) consider_all(call->arg(0));
          },
          [&](const Ref<Select>& select) { consider_all(select->condition); },
          [&](const Ref<Max>& e) {
            if (e.dtype().is_int()) consider(winner_moves(e->a, e->b, true, loop.loop_var), around);
          },
          [&](const Ref<Min>& e) {
            if (e.dtype().is_int()) consider(winner_moves(e->a, e->b, false, loop.loop_var), around);
          },
          [&](const Ref<FloorMod>& e) { consider_wrap(e->a, e->b, around); });
    };
    walk(
        loop, [](const Expr&, const Inside&) {},
        [&](const BufferStore& store, const Inside& around) {
          look(store.value, around);
          for (const Expr& index : store.indices) look(index, around);
        });
    // If edges overlap, one is kept here, and the remaining parts find the other.
    return inner.from < inner.to ? inner : Part{all.from, inner.to};
  }

  template <class F>
  static void for_each_atom(const Expr& condition, const F& use) {
    for (const Expr& atom : conjuncts(condition)) use(atom);
  }

  // ---- simplification in the main loop

  /// Returns the store without conditions that are constant for the ranges of the loops.
  Stmt decided(const Ref<BufferStore>& store) {
    return rewrite(
        Stmt(store), [&](const Ref<Call>& call, Rewriter& r) -> Expr { return choice(call, r); },
        [&](const Ref<Select>& select, Rewriter& r) -> Expr {
          Expr rest = undecided(select->condition);
          if (is_true(rest)) return r(select->true_value);
          if (is_false(rest)) return r(select->false_value);
          return r.descend(select);
        },
        [&](const Ref<Max>& e, Rewriter& r) -> Expr { return extreme(e, ge(e->a, e->b), le(e->a, e->b), r); },
        [&](const Ref<Min>& e, Rewriter& r) -> Expr { return extreme(e, le(e->a, e->b), ge(e->a, e->b), r); },
        [&](const Ref<FloorMod>& e, Rewriter& r) -> Expr {
          auto turns = e->a.dtype().is_int() ? turns_of(e->a, e->b) : std::nullopt;
          if (!turns || turns->first != turns->second || !variables_.is_decidable(ge(e->a, 0))) {
            return r.descend(e);
          }
          return r(e->a) - int_imm(e->a.dtype(), turns->first * *const_int(e->b));
        });
  }

  /// Returns the minimum and maximum quotient of a dividend; nothing if the period exceeds the type.
  std::optional<std::pair<int64_t, int64_t>> turns_of(const Expr& dividend, const Expr& divisor) {
    auto period = const_int(divisor);
    if (!period || *period < 1 || dividend.dtype().is_vector()) return std::nullopt;
    const arith::ConstIntBound bound = analyzer_.const_int_bound(dividend);
    if (!bound.has_min()) return std::nullopt;
    const int64_t least = floor_div(bound.min_value, *period);
    int64_t begin;
    if (__builtin_mul_overflow(least, *period, &begin) || begin < int_min(dividend.dtype())) return std::nullopt;
    return std::pair(least, floor_div(bound.max_value, *period));
  }

  Expr choice(const Ref<Call>& call, Rewriter& r) {
    if (!is_lazy(*call)) return r.descend(call);
    Expr rest = undecided(call->arg(0));
    if (is_true(rest)) return r(call->arg(1));
    if (is_false(rest)) return r(call->arg(2));
    return if_then_else(r(rest), r(call->arg(1)), r(call->arg(2)));
  }

  template <class T>
  Expr extreme(const Ref<T>& e, const Expr& first, const Expr& second, Rewriter& r) {
    if (!e->a.dtype().is_int() || !variables_.is_decidable(first)) return r.descend(e);
    if (analyzer_.can_prove(first)) return r(e->a);
    if (analyzer_.can_prove(second)) return r(e->b);
    return r.descend(e);
  }

  /// Returns the terms of a condition that are not constant.
  Expr undecided(const Expr& condition) {
    Expr rest = bool_imm(true);
    bool never = false;
    for_each_atom(condition, [&](const Expr& atom) {
      const bool is_known = variables_.is_decidable(atom);
      if (is_known && analyzer_.can_prove(atom)) return;
      // An earlier term may guard the evaluation of this one.
      never |= is_known && is_true(rest) && analyzer_.can_prove(logical_not(atom));
      rest = logical_and(rest, atom);
    });
    return never ? bool_imm(false) : rest;
  }

  const Target& target_;
  int around_ = 0;  ///< number of enclosing loops that were peeled
  int64_t copied_ = 0;
};

bool has_choices(const Stmt& body) {
  return any_node(
      body, [](const Ref<Call>& call) { return is_lazy(*call); }, [](const Ref<Select>&) { return true; },
      on<Max, Min, FloorMod>([](const auto& e) { return e.dtype().is_int(); }));
}

}  // namespace

PassResult peel_edges(const Ref<PrimFunc>& func, PassContext& context) {
  if (!has_choices(func->body)) return func;
  return with_body(func, Peeler(*func, context.target).run(func->body));
}

}  // namespace tilewright::lower
