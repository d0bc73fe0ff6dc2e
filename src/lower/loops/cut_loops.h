// Strip-mines loops for vectorization, and splits loops into prologue, main loop and epilogue where conditions change.
// Shared by split_vector_loops, vectorize_plain_loops, peel_edges and partition_loops.
#pragma once

#include <optional>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/condition_line.h"
#include "lower/loops/index_variables.h"

namespace tilewright::lower {

/// Returns one strip of a loop: a loop of `kind` over `lane` that runs `body` for iterations first + lane, counted from
/// the loop's start. Iterations beyond the loop's end are masked.
Stmt strip(const Ref<For>& loop, const Stmt& body, const Expr& first, const Ref<Var>& lane, int64_t width,
           ForKind kind);
/// Strip-mines the loop: returns a loop of kind `outer` over such strips.
///
///   for i in range(n): body(i)         for i_0 in range((n + width - 1) // width):
///                                        for lane in KIND(width):
///                                          if i_0 * width + lane < n: body(i_0 * width + lane)
Stmt strips(const Ref<For>& loop, const Stmt& body, const Ref<Var>& lane, int64_t width, ForKind kind, ForKind outer);
/// Returns a copy of the loop without its first `done` iterations.
Ref<For> remainder(const Ref<For>& loop, const Expr& done);
/// Returns the loop over [begin, begin + extent) with the same variable and body.
Ref<For> part_of(const Ref<For>& loop, const Expr& begin, const Expr& extent);
/// Returns the body in the first iteration.
Stmt first_iteration(const For& loop);

/// Returns the annotation "pragma_loop_partition_hint" of a loop; nothing if it has none.
std::optional<bool> partition_hint(const For& loop);

/// Base of passes that cut loops where conditions change.
class LoopCutter : protected LoopContext {
 public:
  using LoopContext::LoopContext;

 protected:
  /// Calls `condition` for the branch conditions in the loop and `store` for its stores, both with the variables
  /// defined around them inside of the loop.
  template <class F, class G>
  void walk(const For& loop, const F& condition, const G& store) {
    Inside around;
    around.defined.insert(loop.loop_var);
    auto look = [&] {
      visit(
          loop.body,
          [&](const Ref<For>& nested, Visitor& v) {
            around.ranges[nested->loop_var] = arith::IntSet::of_range(range(nested->min, nested->extent));
            around.defined.insert(nested->loop_var);
            inside(*nested, [&] { return v(nested->body), true; });
          },
          [&](const Ref<LetStmt>& let, Visitor& v) {
            // A value that reads memory is no index: it may differ where a condition of the loop is evaluated.
            bool is_index = let->value.dtype().is_integral() && variables_.note(let->var, let->value);
            if (is_index) around.ranges[let->var] = arith::IntSet::point(let->value);
            around.defined.insert(let->var);
            v(let->body);
          },
          [&](const Ref<IfThenElse>& branch, Visitor& v) {
            condition(branch->condition, around);
            v(branch->then_case);
            v(branch->else_case);
          },
          [&](const Ref<BufferStore>& s, Visitor&) { store(*s, around); }, [&](const Ref<Evaluate>&, Visitor&) {});
      return true;
    };
    inside(loop, look);
  }

  /// Instead of splitting a parallel loop, which would add a barrier between the parts, branches in its body:
  /// iterations in [low, high) run `middle`, others run `edges`, both rewritten by `r`. A null bound is the loop's own.
  Stmt branch(const Ref<For>& loop, const Expr& low, const Expr& high, const Stmt& middle, const Stmt& edges,
              Rewriter& r);
};

}  // namespace tilewright::lower
