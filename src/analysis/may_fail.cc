#include "analysis/may_fail.h"

#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::analysis {

namespace {

/// Whether all divisors are nonzero constants. Covers most index expressions without a proof.
bool has_only_nonzero_constant_divisors(const Expr& e) {
  if (e.is<Var>() || e.is<IntImm>()) return true;
  const BinaryOperands operands = binary_operands(e);
  if (!operands || e.depth() > kInlineDepth) return false;
  if (e.is<FloorDiv>() || e.is<FloorMod>() || e.is<Div>() || e.is<Mod>()) {
    const IntImm* by = operands.b->as<IntImm>();
    return by && by->value != 0 && has_only_nonzero_constant_divisors(*operands.a);
  }
  return has_only_nonzero_constant_divisors(*operands.a) && has_only_nonzero_constant_divisors(*operands.b);
}

}  // namespace

bool may_divide_by_zero(const Expr& e, arith::Analyzer& analyzer) {
  if (has_only_nonzero_constant_divisors(e)) return false;
  bool found = false;
  auto check_divisor = [&](const auto& division, Visitor& walk) {
    const Expr& by = division->b;
    if (by.dtype().is_int() || by.dtype().is_uint()) found |= !analyzer.can_prove(ne(by, 0));
    walk(division->a);
    walk(by);
  };
  visit(e, on<FloorDiv, FloorMod, Div, Mod>(check_divisor));
  return found;
}

bool may_fail(const Expr& e, arith::Analyzer& analyzer, const SureReads& sure) {
  bool may_fail_here = may_divide_by_zero(e, analyzer);
  visit(
      e,
      [&](const Ref<BufferLoad>& load, Visitor& walk) {
        if (may_fail_here || sure.contains(load, analyzer)) return;
        for (size_t i = 0; i < load->indices.size() && !may_fail_here; ++i) {
          const Expr& index = load->indices[i];
          may_fail_here = !index.dtype().is_scalar() || !analyzer.can_prove(ge(index, 0)) ||
                          !analyzer.can_prove(lt(index, load->buffer->shape[i]));
        }
        walk.descend(load);
      },
      [&](const Ref<Call>& call) {
        Intrinsic intrinsic = intrinsic_of(*call);
        bool is_value = intrinsic != Intrinsic::kUnknown && intrinsic_row(intrinsic).effect == Effect::kPure;
        may_fail_here |= !is_value && intrinsic != Intrinsic::k_if_then_else;
      });
  return may_fail_here;
}

namespace {

bool has_failing_bound(const arith::IntSet& set, arith::Analyzer& analyzer, const SureReads& sure) {
  auto bound_may_fail = [&](const Expr& bound) { return bound.defined() && may_fail(bound, analyzer, sure); };
  return bound_may_fail(set.min) || bound_may_fail(set.max);
}

}  // namespace

bool has_failing_bounds(const arith::Box& box, arith::Analyzer& analyzer, const SureReads& sure) {
  return any_of(box, [&](const arith::IntSet& set) { return has_failing_bound(set, analyzer, sure); });
}

arith::Box without_failing_bounds(arith::Box box, arith::Analyzer& analyzer, const SureReads& sure,
                                  const SureReads& at_elements) {
  for (arith::IntSet& set : box) {
    const bool is_index = set.is_bounded() && analyzer.can_prove_equal(set.min, set.max);
    if (has_failing_bound(set, analyzer, is_index ? at_elements : sure)) set = arith::IntSet::everything();
  }
  return box;
}

bool may_fail_early(const ReductionStep& step, arith::Analyzer& analyzer) {
  return step.may_skip_operand() && may_fail(step.operand(), analyzer);
}

}  // namespace tilewright::analysis
