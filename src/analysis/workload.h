// Counts the operations and bytes of a program, the numerators of GFLOP/s and GB/s, and describes the arguments that a
// tuner has to make for it.
//
// The work is that of the program as the user wrote it, also where it was scheduled since: a block counts once for each
// point of the domain of its axes, not for each iteration of the loops around it, which may go beyond (masks of tiles
// that do not divide) or come there again (halos that are computed twice). Loops that no axis is bound to repeat it.
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
  /// Bytes of each parameter that is read plus of each that is written: the traffic no program can avoid. Of one whose
  /// elements data choose, no more than there are accesses.
  double bytes_read = 0, bytes_written = 0;
  /// Sum over blocks of the product of their reduction extents: the length that error bounds need. At least 1.
  double reduction_length = 1;
  /// False if a non-constant extent or shape was replaced by the middle of its range, or if data select the accessed
  /// elements.
  bool exact = true;
};

/// `module`: where the functions are that it calls; what is passed to others may be read and written there. `means`:
/// what extents that depend on data are on average, in a call whose data are known.
Workload analyze_workload(const Ref<PrimFunc>& func, const Module* module = nullptr,
                          const std::vector<std::pair<Expr, double>>& means = {});

}  // namespace tilewright::analysis
