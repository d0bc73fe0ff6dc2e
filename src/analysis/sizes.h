// Facts about symbolic sizes of a program.
//
//   A: T.Buffer((m, n))
//   for f in range(n * m):              inside of the loop m and n are at least 1: f // n and f % n have values there,
//     ... A[f // n, f % n] ...          and are the digits of f
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/analyzer.h"

namespace tilewright::analysis {

/// Assumes that the extents of the parameters' buffers are not negative.
void assume_sizes(arith::Analyzer& analyzer, const Tree& tree);
/// Assumes that the loops run: no factor of their extents is 0.
void assume_runs(arith::Analyzer& analyzer, const Tree& tree, const std::vector<int>& loops);
/// Assumes that the block has instances, as far as `values` depend on its axes: no factor of the extent of an axis that
/// `values` use is 0.
void assume_instances(arith::Analyzer& analyzer, const Tree& tree, int block, const std::vector<Expr>& values);
/// Assumes that the loops around a statement, itself included, run. Not valid for code that will be outside of them.
void assume_runs_around(arith::Analyzer& analyzer, const Tree& tree, int at);

}  // namespace tilewright::analysis
