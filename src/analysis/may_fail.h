// Expressions that fail where a divisor is zero or an index is out of bounds. A schedule must not compute them where
// the original program does not.
#pragma once

#include "analysis/sure_reads.h"
#include "arith/analyzer.h"
#include "arith/int_set.h"
#include "ir/expr.h"
#include "ir/reduction_step.h"

namespace tilewright::analysis {

/// Whether the expression divides by something that is not proved to be nonzero. A program may run nothing if a size is
/// zero; then code that a schedule adds before it must not fail either.
bool may_divide_by_zero(const Expr& e, arith::Analyzer& analyzer);

/// Whether the expression may fail or has effects: it may divide by zero, may read out of bounds other than `sure`
/// elements, or calls a function with side effects.
bool may_fail(const Expr& e, arith::Analyzer& analyzer, const SureReads& sure = {});

/// Whether computing a bound of the box may fail, and the box without such bounds. `at_elements`: reads that are safe
/// for each element of the box. A single index is only evaluated at elements; other bounds also if the box is empty.
bool has_failing_bounds(const arith::Box& box, arith::Analyzer& analyzer, const SureReads& sure);
arith::Box without_failing_bounds(arith::Box box, arith::Analyzer& analyzer, const SureReads& sure,
                                  const SureReads& at_elements);

/// Whether earlier steps of the reduction decide if this step evaluates its operand, and the operand may fail:
/// `B[v] and A[I[v]] > 0` reads nothing once B[v] is false. Such steps must keep their order.
bool may_fail_early(const ReductionStep& step, arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
