// Counts the operations and bytes of a program, the numerators of GFLOP/s and GB/s, and describes the arguments with
// which a tuner calls it.
//
// The count does not depend on the schedule: a block counts once per point of its axis domains. The surrounding loops
// may have more iterations, which partial tiles mask or which recompute halos. Loops that no axis is bound to repeat
// the block.
//
//   for i0, i1 in T.grid(4, 32):                   100 additions, 100 floats read, 100 written
//     with T.block("B"):
//       T.where(i0 * 32 + i1 < 100)
//       vi = T.axis.spatial(100, i0 * 32 + i1)
//       B[vi] = A[vi] + 1.0
#pragma once

#include <utility>
#include <vector>

#include "analysis/parameter_uses.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

struct Workload {
  std::vector<ParameterUse> params;
  /// Floating-point operations: each of + - * / min max and each intrinsic on floats counts 1 a lane; casts, selects,
  /// comparisons and the init of a reduction count 0. A multiply-add is 2, as everywhere in this field.
  double flops = 0;
  /// Integer operations on data, counted like `flops`; those of indices count 0.
  double int_ops = 0;
  /// Bytes of all parameters that are read, and that are written: the traffic that no schedule can avoid. If data
  /// select the accessed elements of a parameter, at most one element per access counts.
  double bytes_read = 0, bytes_written = 0;
  /// Sum over blocks of the product of their reduction extents, at least 1: the length for bounds of rounding errors.
  double reduction_length = 1;
  /// False if a non-constant extent or shape was replaced by the middle of its range, or if data select the accessed
  /// elements.
  bool exact = true;
};

/// `module`: has the functions that `func` calls; other callees may read and write their arguments. `means`: average
/// values of extents that depend on data, for known data.
Workload analyze_workload(const Ref<PrimFunc>& func, const Module* module = nullptr,
                          const std::vector<std::pair<Expr, double>>& means = {});

}  // namespace tilewright::analysis
