// Invert a bijective iteration map: split each output into its digits, and sum the digits of each input variable.

#include "arith/iter_factor.h"
#include "arith/iter_map.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// Appends the mark in post-order: the iterators that a fused iterator consists of come before it.
void visit_marks(const IterMarkPtr& mark, std::vector<IterMarkPtr>& post_order) {
  if (is_contained(post_order, mark)) return;
  if (mark->sum) {
    for (const IterSplitExpr& split : mark->sum->args) visit_marks(split.source, post_order);
  }
  post_order.push_back(mark);
}

}  // namespace

std::unordered_map<NodeRef, Expr> inverse_affine_iter_map(const std::vector<IterSumExpr>& indices,
                                                          const std::vector<Expr>& outputs, Analyzer& analyzer) {
  Factors f(analyzer);
  std::unordered_map<const IterMark*, Expr> values;
  auto distribute = [&](const IterSumExpr& sum, const Expr& value) {
    Expr offset = f.sub(value, sum.base);
    for (size_t i : indices_of(sum.args)) {
      const IterSplitExpr& split = sum.args[i];
      Expr digit = f.div(offset, split.scale);
      if (i > 0) digit = f.mod(digit, split.extent);
      digit = f.mul(digit, split.lower_factor);
      Expr& total = values[split.source.get()];
      total = total.defined() ? f.add(total, digit) : digit;
    }
  };
  std::vector<IterMarkPtr> order;
  for (size_t i : indices_of(indices)) {
    distribute(indices[i], outputs[i]);
    for (const IterSplitExpr& split : indices[i].args) visit_marks(split.source, order);
  }
  std::unordered_map<NodeRef, Expr> result;
  for (const IterMarkPtr& mark : reversed(order)) {
    auto* value = find_value(values, mark.get());
    if (!value) continue;
    if (mark->sum) {
      distribute(*mark->sum, *value);
    } else {
      result[mark->var] = f.add(*value, mark->min);
    }
  }
  return result;
}

}  // namespace tilewright::arith
