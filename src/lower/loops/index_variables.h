// Distinguishes indices and sizes, whose arithmetic does not overflow, from data, whose arithmetic wraps. The analyzer
// may only be asked about conditions on the former. Loop partitioning and index simplification depend on that.
//
//   x: T.int32 = A[i]                  x is data: x * 2 may wrap, so the condition is not simplified
//   if x * 2 // 2 == x:
//     for k in range(x):               inside of the loop, its bound x counts as a size
//       if k + 1 <= x: ...
#pragma once

#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/stmt.h"

namespace tilewright::lower {

/// Whether the condition contains only integer variables and constants.
bool is_of_integers(const Expr& condition);

class IndexVariables {
 public:
  /// `analyzer` must know the ranges of the loops and variables that are entered and noted.
  IndexVariables(const PrimFunc& func, arith::Analyzer& analyzer);

  /// Enters and leaves the body of a loop.
  void enter(const For& loop);
  void leave(const For& loop);
  /// Classifies a let variable: it is an index if its value is made of indices and sizes. Returns whether it is.
  bool note(const Ref<Var>& v, const Expr& value);

  /// Whether the analyzer may evaluate the condition: it reads no memory, and none of its arithmetic may wrap. Sizes
  /// are assumed to be small enough for the index arithmetic of the program (analysis/size_limits.h).
  bool is_decidable(const Expr& condition);
  /// Whether the arithmetic of the expression may wrap, for any values of its loads.
  bool may_wrap(const Expr& e);

 private:
  bool leaves_type(const Expr& e);
  bool is_known(const Ref<Var>& v) const { return known_.contains(v) || bounds_.contains(v); }
  bool is_open(const Ref<Var>& v) const { return open_.contains(v) || bounds_.contains(v); }

  arith::Analyzer& analyzer_;
  std::unordered_set<NodeRef> known_;        ///< indices and sizes
  std::unordered_set<NodeRef> open_;         ///< indices and sizes without a constant bound
  std::unordered_multiset<NodeRef> bounds_;  ///< data that are bounds of enclosing loops
};

/// Base of passes: ranges and kinds of the variables in scope, collected while the pass walks through a function.
class LoopContext {
 public:
  explicit LoopContext(const PrimFunc& func);

 protected:
  /// Calls `run` inside of the loop.
  template <class F>
  auto inside(const For& loop, const F& run) {
    analyzer_.bind(loop.loop_var, loop.min, loop.extent);
    variables_.enter(loop);
    auto result = run();
    variables_.leave(loop);
    return result;
  }
  void note(const LetStmt& let) {
    if (let.value.dtype().is_integral()) variables_.note(let.var, let.value);
  }

  arith::Analyzer analyzer_;
  IndexVariables variables_;
};

}  // namespace tilewright::lower
