// Let 1 = c_0 | c_1 | ... | c_k be positive divisors of each other (the cuts). Then
//   f = sum of digit_i * c_i,    f // c_i = sum of digit_j * (c_j / c_i) for j >= i,    f % c_i = the sum for j < i,
// where digit_i is in [0, c_(i+1) / c_i), and digit_k is in [0, ceildiv(extent, c_k)). Conditions f < end are removed:
// if they hold in an iteration, they hold in each one with smaller digits. If c_k divides such an end, digit_k is less
// than the quotient.
//
// Fusing: f0 * e1 + f1, for loops f0 over [0, e0) and f1 over [0, e1) inside of it, takes the values [0, e0 * e1) in
// the order of the iterations, since it is ordered lexicographically by (f0, f1). Loops between the two do not change
// that.
#include "analysis/loop_digits.h"

#include <functional>
#include <optional>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using Rewriting = std::function<Expr(const Expr&)>;

void rewrite_nest(LoopNest& nest, const Rewriting& rewriting) {
  for (NestLoop& loop : nest.loops) loop.min = rewriting(loop.min), loop.extent = rewriting(loop.extent);
  for (Expr& term : nest.terms) term = rewriting(term);
  for (auto& [var, value] : nest.values) value = rewriting(value);
}

bool uses_loops(const Expr& e, const std::vector<NestLoop>& loops) {
  return any_of(loops, [&](const NestLoop& loop) { return uses_var(e, loop.var); });
}

/// Returns the position of the loop with variable `e`, if it runs over [0, n) for an n that depends on no loop.
std::optional<size_t> find_loop(const Expr& e, const std::vector<NestLoop>& loops) {
  for (size_t i : indices_of(loops)) {
    if (!same_expr(e, loops[i].var)) continue;
    if (!is_const_int(loops[i].min, 0) || uses_loops(loops[i].extent, loops)) return std::nullopt;
    return i;
  }
  return std::nullopt;
}

/// Calls `found` for the dividend and the divisor of each quotient and remainder, inner ones first.
template <class F>
void for_each_division(const Expr& e, F&& found) {
  visit(
      e,
      [&](const Ref<FloorDiv>& quotient, Visitor& walk) {
        walk.descend(quotient);
        found(quotient->a, quotient->b);
      },
      [&](const Ref<FloorMod>& remainder, Visitor& walk) {
        walk.descend(remainder);
        found(remainder->a, remainder->b);
      });
}

// ---- fusing loops that are divided together
// -----------------------------------------------------------------------------

/// A sum of scaled loop variables, outermost first, that takes the values [0, n) in the order of the iterations.
struct JoinedLoops {
  std::vector<size_t> loops;
  std::vector<Expr> scales;
};

bool read_sum(const Expr& e, const std::vector<NestLoop>& loops, JoinedLoops& out) {
  if (const Add* sum = e.as<Add>()) return read_sum(sum->a, loops, out) && read_sum(sum->b, loops, out);
  const Mul* product = e.as<Mul>();
  auto at = find_loop(product ? product->a : e, loops);
  if (!at || (product && uses_loops(product->b, loops))) return false;
  out.loops.push_back(*at);
  out.scales.push_back(product ? product->b : one(e.dtype()));
  return true;
}

std::optional<JoinedLoops> joined_loops(const Expr& e, const std::vector<NestLoop>& loops, arith::Analyzer& analyzer) {
  JoinedLoops sum;
  if (!e.is<Add>() || !read_sum(e, loops, sum)) return std::nullopt;
  for (size_t i = 0; i + 1 < sum.loops.size(); ++i) {
    if (sum.loops[i] >= sum.loops[i + 1]) return std::nullopt;
    const Expr inner = sum.scales[i + 1] * loops[sum.loops[i + 1]].extent;
    if (!analyzer.can_prove_equal(sum.scales[i], inner)) return std::nullopt;
  }
  if (!is_const_int(sum.scales.back(), 1)) return std::nullopt;
  return sum;
}

/// Replaces the loops of the sum `e` by one fused loop.
void join(LoopNest& nest, const JoinedLoops& sum, const Expr& e, arith::Analyzer& analyzer) {
  const NestLoop& outer = nest.loops[sum.loops[0]];
  NestLoop joined{var(outer.var->name_hint, e.dtype()), zero(e.dtype()), sum.scales[0] * outer.extent, false};
  VarMap loops;
  for (size_t i : indices_of(sum.loops)) {
    const NestLoop& loop = nest.loops[sum.loops[i]];
    joined.is_bound |= loop.is_bound;
    const Expr quotient = floordiv(Expr(joined.var), sum.scales[i]);
    loops[loop.var] = cast(loop.var.dtype(), i == 0 ? quotient : floormod(quotient, loop.extent));
  }
  analyzer.bind(joined.var, joined.min, joined.extent);
  rewrite_nest(nest, [&](const Expr& value) {
    Expr whole = rewrite(value, [&](const Ref<Add>& add, Rewriter& walk) -> Expr {
      return same_expr(add, e) ? Expr(joined.var) : walk.descend(add);
    });
    Expr changed = substitute(whole, loops);
    return same_expr(changed, whole) ? whole : analyzer.simplify(changed);
  });
  nest.values.insert(loops.begin(), loops.end());
  nest.loops[sum.loops[0]] = joined;
  for (size_t i = sum.loops.size(); i-- > 1;) {
    nest.loops.erase(nest.loops.begin() + static_cast<std::ptrdiff_t>(sum.loops[i]));
  }
}

// ---- the digits of a loop ------------------------------------------------------------------------------------------

class LoopDigits {
 public:
  LoopDigits(const NestLoop& loop, arith::Analyzer& analyzer) : loop_(loop), analyzer_(analyzer) {
    cuts_.push_back(one(loop.var.dtype()));
  }

  /// Adds the divisors of quotients and remainders in the expression to the cuts, if they form a chain of divisors.
  void cut_for(const Expr& e) {
    for_each_division(e, [&](const Expr& dividend, const Expr& divisor) { cut_by(dividend, divisor); });
  }

  bool has_digits() const { return cuts_.size() > 1; }

  /// Returns the loops over the digits, outermost first. `ends`: upper bounds of the loop variable.
  std::vector<NestLoop> loops(const std::vector<Expr>& ends) {
    const DataType dtype = loop_.var.dtype();
    std::vector<NestLoop> result;
    for (size_t i : indices_of(cuts_)) {
      const Expr extent = i + 1 < cuts_.size() ? *quotient(cuts_[i + 1], cuts_[i]) : last_extent(ends);
      digits_.push_back(var(loop_.var->name_hint + "_" + std::to_string(i), dtype));
      result.insert(result.begin(), NestLoop{digits_.back(), zero(dtype), extent, loop_.is_bound});
    }
    return result;
  }

  Expr in_digits(const Expr& e) {
    auto replaced = [&](const auto& value, Rewriter& walk) -> Expr {
      auto digits = span_of(value);
      return digits ? sum(*digits) : walk.descend(value);
    };
    Expr divided = rewrite(e, on<FloorDiv, FloorMod>(replaced));
    return substitute(divided, {{loop_.var, sum({0, cuts_.size()})}});
  }

 private:
  /// The digits [begin, end), as a number: f % cuts[end] // cuts[begin].
  struct Span {
    size_t begin, end;
  };

  Expr last_extent(const std::vector<Expr>& ends) {
    for (const Expr& end : ends) {
      if (auto exact = quotient(end, cuts_.back())) return *exact;
    }
    return ceildiv(loop_.extent, cuts_.back());
  }

  std::optional<Expr> quotient(const Expr& a, const Expr& b) {
    if (is_const_int(b, 1)) return a;
    const Expr result = analyzer_.simplify(floordiv(a, b));
    if (!analyzer_.can_prove_equal(result * b, a)) return std::nullopt;
    return result;
  }

  bool is_cut(size_t at, const Expr& value) { return analyzer_.can_prove_equal(cuts_[at], value); }

  /// Returns the digits that a quotient or remainder consists of, if its divisor is a cut.
  std::optional<Span> span_of(const Expr& e) {
    if (same_expr(e, loop_.var)) return Span{0, cuts_.size()};
    const FloorDiv* quotient = e.as<FloorDiv>();
    const FloorMod* remainder = e.as<FloorMod>();
    if (!quotient && !remainder) return std::nullopt;
    auto dividend = span_of(quotient ? quotient->a : remainder->a);
    if (!dividend) return std::nullopt;
    const Expr at = cuts_[dividend->begin] * (quotient ? quotient->b : remainder->b);
    for (size_t i = dividend->begin + 1; i < dividend->end; ++i) {
      if (is_cut(i, at)) return quotient ? Span{i, dividend->end} : Span{dividend->begin, i};
    }
    return std::nullopt;
  }

  void cut_by(const Expr& dividend, const Expr& divisor) {
    auto digits = span_of(dividend);
    if (!digits) return;
    const Expr value = analyzer_.simplify(cuts_[digits->begin] * divisor);
    if (!analyzer_.can_prove(gt(value, 0))) return;
    for (size_t i = cuts_.size(); i-- > 0;) {
      if (is_cut(i, value)) return;
      if (!quotient(value, cuts_[i])) continue;
      if (i + 1 < cuts_.size() && !quotient(cuts_[i + 1], value)) return;
      cuts_.insert(cuts_.begin() + static_cast<std::ptrdiff_t>(i) + 1, value);
      return;
    }
  }

  Expr sum(Span span) {
    Expr result;
    for (size_t i = span.end; i-- > span.begin;) {
      Expr term = Expr(digits_[i]) * *quotient(cuts_[i], cuts_[span.begin]);
      result = result.defined() ? result + term : term;
    }
    return result;
  }

  NestLoop loop_;
  arith::Analyzer& analyzer_;
  std::vector<Expr> cuts_;  ///< ascending
  std::vector<Ref<Var>> digits_;
};

bool is_constant(const Expr& e, const std::vector<NestLoop>& loops) {
  return !uses_loops(e, loops) && !has_node<BufferLoad, Call>(e);
}

/// Removes conditions of the form loop < constant. Returns these constants, and the extent of the loop.
std::vector<Expr> remove_upper_bounds(LoopNest& nest, const NestLoop& loop) {
  std::vector<Expr> ends;
  std::erase_if(nest.terms, [&](const Expr& term) {
    const LT* less = term.as<LT>();
    if (!less || !same_expr(less->a, loop.var) || !is_constant(less->b, nest.loops)) return false;
    ends.push_back(less->b);
    return true;
  });
  ends.push_back(loop.extent);
  return ends;
}

/// Fuses the loops of the first sum that one of the values divides. Returns whether there is one.
bool join_some(LoopNest& nest, const std::vector<Expr>& values, const std::function<bool(const Ref<Var>&)>& is_kept,
               arith::Analyzer& analyzer) {
  Expr whole;
  std::optional<JoinedLoops> found;
  for (const Expr& value : values) {
    for_each_division(value, [&](const Expr& dividend, const Expr&) {
      if (found) return;
      found = joined_loops(dividend, nest.loops, analyzer);
      if (found && any_of(found->loops, [&](size_t at) { return is_kept(nest.loops[at].var); })) {
        found.reset();
      }
      whole = dividend;
    });
  }
  if (found) join(nest, *found, whole, analyzer);
  return found.has_value();
}

}  // namespace

Expr ascending(const Expr& value, const Expr& min, const Expr& extent, const arith::IterDomains& inputs,
               const Expr& predicate, arith::Analyzer& analyzer) {
  const auto read = arith::detect_iter_map({value}, inputs, predicate, arith::IterMapLevel::kNoCheck, analyzer).indices;
  auto falls = [&](const arith::IterSplitExpr& digit) { return analyzer.can_prove(lt(digit.scale, 0)); };
  if (read.empty() || !any_of(read[0].args, falls)) return value;
  return analyzer.simplify(min * 2 + extent - 1 - value);
}

bool split_into_digits(LoopNest& nest, const std::function<std::vector<Expr>(const LoopNest&)>& values,
                       const std::function<bool(const Ref<Var>&)>& is_kept, arith::Analyzer& analyzer) {
  bool any = false;
  while (join_some(nest, values(nest), is_kept, analyzer)) any = true;
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    const NestLoop loop = nest.loops[i];
    if (is_kept(loop.var) || !find_loop(loop.var, nest.loops)) continue;
    LoopDigits digits(loop, analyzer);
    for (const Expr& value : values(nest)) digits.cut_for(value);
    for (const Expr& term : nest.terms) digits.cut_for(term);
    if (!digits.has_digits()) continue;
    const std::vector<NestLoop> loops = digits.loops(remove_upper_bounds(nest, loop));
    rewrite_nest(nest, [&](const Expr& e) { return digits.in_digits(e); });
    nest.values[loop.var] = digits.in_digits(loop.var);
    erase_at(nest.loops, i);
    nest.loops.insert(nest.loops.begin() + static_cast<std::ptrdiff_t>(i), loops.begin(), loops.end());
    i += loops.size() - 1;
    any = true;
  }
  return any;
}

}  // namespace tilewright::analysis
