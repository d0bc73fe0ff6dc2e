// Whether two programs are the same when each integer index expression may be written in another way.
#pragma once

#include "ir/structural.h"

namespace tilewright::arith {

struct SameProgram {
  std::optional<Mismatch> mismatch;  ///< nothing where they are the same
  int64_t functions = 0;             ///< in how many of them something had to be proved; a statement counts as one
};

/// As find_mismatch(), but where expressions of the types int32 and int64 that load nothing differ, the analyzer may
/// prove that they are equal for all values that the loops, block axes and conditions around them let variables take.
SameProgram compare_up_to_indices(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars);

}  // namespace tilewright::arith
