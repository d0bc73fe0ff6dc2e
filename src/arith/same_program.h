// Whether two programs are the same when each integer index expression may be written in another way.
#pragma once

#include "ir/structural.h"

namespace tilewright::arith {

struct SameProgram {
  std::optional<Mismatch> mismatch;  ///< nothing where they are the same
  int64_t functions = 0;             ///< in how many of them something had to be proved; a statement counts as one
};

/// Like find_mismatch(), but expressions of type int32 or int64 without loads may differ if the analyzer proves that
/// they are equal for all values that the enclosing loops, block axes and conditions allow.
SameProgram compare_up_to_indices(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars);

}  // namespace tilewright::arith
