#include "lower/loops/condition_line.h"

#include "arith/fingerprint.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::lower {
namespace {

/// Returns an expression that is at least 0 exactly if the comparison holds; null for other conditions, and for those
/// of small and unsigned integers, whose differences wrap.
Expr slack_of(const Expr& atom) {
  const BinaryOperands sides = binary_operands(atom);
  if (!sides || !arith::is_index(sides.a->dtype().element())) return {};
  const Expr &a = *sides.a, &b = *sides.b;
  if (atom.is<LT>()) return b - a - 1;
  if (atom.is<LE>()) return b - a;
  if (atom.is<GT>()) return a - b - 1;
  return atom.is<GE>() ? a - b : Expr();
}

}  // namespace

Expr Line::border() const { return p > 0 ? zero(q.dtype()) - floordiv(q, p) : floordiv(q, -p) + 1; }

std::optional<int64_t> Line::const_border() const {
  auto value = const_int(q);
  if (!value) return {};
  return p > 0 ? -floor_div(*value, p) : floor_div(*value, -p) + 1;
}

std::optional<Line> line_of(const Expr& comparison, const Ref<Var>& v, const Inside& inside, bool least,
                            arith::Analyzer& analyzer, IndexVariables& variables) {
  if (!uses_var(comparison, v) || !variables.is_decidable(comparison)) return {};
  Expr slack = slack_of(comparison);
  if (!slack.defined()) return {};
  arith::IntSet values = arith::eval_set(slack, inside.ranges, analyzer);
  Expr end = least ? values.min : values.max;
  if (!end.defined()) return {};
  Expr q = analyzer.simplify(substitute(end, {{v, zero(v.dtype())}}));
  auto p = const_int(analyzer.simplify(substitute(end, {{v, one(v.dtype())}}) - q));
  if (!p || *p == 0 || *p == INT64_MIN) return {};  // -p must not overflow
  // A number that the type of the comparison does not hold has wrapped: int32(i) of a loop over int64.
  const bool is_wider = v.dtype().bits > q.dtype().bits;
  if (is_wider && !analyzer.const_int_bound(v).within(arith::ConstIntBound::of_type(q.dtype()))) return {};
  // A line of numbers wider than the loop's: (int64(i) << 40) > int64(j).
  if (!analyzer.can_prove_equal(end, cast(q.dtype(), v) * *p + q)) return {};
  if (effect_of(q) != Effect::kPure) return {};  // an end of a loop that is read inside
  if (uses_any_of(q, inside.defined)) return {};
  return Line{*p, q};
}

}  // namespace tilewright::lower
