// Which variables are indices and sizes, and what is made of them: only their arithmetic is known not to overflow.
//
//   x: T.int32 = A[i]                  `x` is data: its arithmetic wraps, and a condition of it is decided by what runs
//   if x * 2 // 2 == x:
//     for k in range(x):               a bound of a loop is a size while the loop runs
//       if k + 1 <= x: ...
#pragma once

#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/stmt.h"

namespace tilewright::lower {

/// Whether all variables of the condition are integers, and nothing in it is a number of another type.
bool is_of_integers(const Expr& condition);

class IndexVariables {
 public:
  /// `analyzer` knows the ranges of what is noted here.
  IndexVariables(const PrimFunc& func, arith::Analyzer& analyzer);

  /// The loop runs over [min, min + extent).
  void enter(const For& loop);
  void leave(const For& loop);
  /// Whether the value is made of indices and sizes; then so is the variable.
  bool note(const Ref<Var>& v, const Expr& value);

  /// Whether the context decides about the condition: nothing in it reads, or leaves the range of its type on the way.
  /// Sizes are small enough for what is made of them; nothing is known of data.
  bool decides(const Expr& condition);
  /// Whether the arithmetic of the value may wrap, whatever its loads return.
  bool may_wrap(const Expr& e);

 private:
  bool leaves_type(const Expr& e);
  bool is_known(const Ref<Var>& v) const { return known_.contains(v) || bounds_.contains(v); }
  bool is_open(const Ref<Var>& v) const { return open_.contains(v) || bounds_.contains(v); }

  arith::Analyzer& analyzer_;
  std::unordered_set<NodeRef> known_;        ///< indices and sizes
  std::unordered_set<NodeRef> open_;         ///< variables without a bound
  std::unordered_multiset<NodeRef> bounds_;  ///< data that bounds the loops around
};

/// Facts about the variables around, collected while a pass walks through a function.
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
