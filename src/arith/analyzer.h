// Integer analysis: intervals, residue classes, simplification and proofs.
//
//   Analyzer analyzer;
//   analyzer.bind(i, range_of(i32(16)));
//   analyzer.simplify(floordiv(i * 4 + j, i32(64)));
//   { auto scope = analyzer.constraint(lt(i, n)); analyzer.can_prove(lt(i + 1, n + 1)); }
//
// Contract. int32 and int64 arithmetic is index arithmetic: it does not overflow, nor does any partial sum of its
// terms; a division has a divisor other than 0. The other integer types wrap, and floats round: nothing is reassociated
// there. A value of int32 or int64 type that is data, computed from loads, wraps too: simplify such values with
// simplify_value().
//
// Every answer is a proof: "false" and "nothing known" are always allowed, their opposites never by mistake. An
// analyzer is not thread-safe; making one is cheap.
#pragma once

#include <memory>
#include <vector>

#include "arith/bound.h"
#include "ir/expr.h"

namespace tilewright::arith {

class Engine;

class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(Analyzer&&) noexcept;
  Analyzer& operator=(Analyzer&&) noexcept;

  /// Binds the variable to [min, min + extent), which is assumed not to be empty: code inside the loop runs. A new
  /// binding replaces an older one.
  void bind(const Ref<Var>& var, const Ref<Range>& range);
  void bind(const Ref<Var>& var, const Expr& min, const Expr& extent);
  /// Binds the variable to the value from now on.
  void bind(const Ref<Var>& var, const Expr& value);
  /// Assumes the condition from now on.
  void assume(const Expr& condition);

  /// The condition holds until the scope is destroyed. Scopes nest.
  class Scope {
   public:
    Scope(Scope&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)), mark_(other.mark_) {}
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    friend class Analyzer;
    Scope(Engine* engine, size_t mark) : engine_(engine), mark_(mark) {}
    Engine* engine_;
    size_t mark_;
  };
  [[nodiscard]] Scope constraint(const Expr& condition);

  /// For a vector expression, the bound holds for all lanes.
  ConstIntBound const_int_bound(const Expr& e);
  ModularSet modular_set(const Expr& e);

  /// An equal value where the context holds, in a form that is equal for many equal expressions. Returns the same
  /// node when there is nothing to do.
  Expr simplify(const Expr& e);
  /// simplify() for a value that is stored or returned: sums of int32 and int64 loads may wrap.
  Expr simplify_value(const Expr& e);

  /// Whether the condition always holds; of a vector: in every lane.
  bool can_prove(const Expr& condition);
  /// can_prove() for a condition that the program states: in its sums, int32 and int64 values from buffers may wrap.
  bool can_prove_written_condition(const Expr& condition);
  bool can_prove_equal(const Expr& a, const Expr& b);
  bool can_prove_less(const Expr& a, const Expr& b);
  bool can_prove_less_equal(const Expr& a, const Expr& b);
  bool can_prove_greater_equal(const Expr& e, int64_t lower);

  /// Access for the other analyses of this layer.
  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace tilewright::arith
