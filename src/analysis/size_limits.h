// Conditions on the sizes of a call under which no extent of the program overflows its type.
//
//   for i_0, i_1 in T.grid((n + 999999) // 1000000, 1000000):     needs (n + 999999) // 1000000 * 1000000 - 1 <=
//   2147483647
//     with T.block("B"):
//       T.where(i_0 * 1000000 + i_1 < n)
//
// The root block may require more of them, as programs over formats of a tensor do
// (python/tilewright/sparse/decompose.py):
//
//   T.block_attr({"required_sizes": [[m == 1000, "'A' is stored in a format for 1000 rows, ...", "pass ..."]]})
//
// Analyses take for granted that sizes are small enough for what schedules make of them (arith/analyzer.h); this is
// where a call is asked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

/// Prefix of the message of an assertion that checks a limit.
inline constexpr std::string_view kExtentMark = "[call/extent] ";

struct SizeLimit {
  Expr holds;           ///< over the variables of the parameters, in int64
  std::string message;  ///< which extent is too large
  std::string hint;
  NodeRef node;  ///< the loop or the buffer
};

/// Limits of the extents of loops and of allocated buffers that are made of the sizes of the arguments alone; none of
/// those that always hold.
std::vector<SizeLimit> size_limits(const PrimFunc& func);

}  // namespace tilewright::analysis
