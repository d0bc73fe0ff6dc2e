// Divisions that fail where a size is zero.
#pragma once

#include "arith/analyzer.h"
#include "ir/expr.h"

namespace tilewright::analysis {

/// Whether it divides by what is not proved to be other than zero. Where nothing of a program runs for a size of zero,
/// what a schedule computes ahead of it must not fail either.
bool may_divide_by_zero(const Expr& e, arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
