// Conditions on the sizes of a call under which no extent of the program overflows its type.
//
//   for i_0, i_1 in T.grid((n + 999999) // 1000000, 1000000):     (n + 999999) // 1000000 * 1000000 - 1 must be at
//     with T.block("B"):                                          most 2147483647
//       T.where(i_0 * 1000000 + i_1 < n)
//
// The root block may declare more conditions, as programs over sparse formats do
// (python/tilewright/sparse/decompose.py):
//
//   T.block_attr({"required_sizes": [[m == 1000, "'A' is stored in a format for 1000 rows, ...", "pass ..."]]})
//
// Analyses assume that sizes are small enough for the index arithmetic of schedules (arith/analyzer.h). Each call
// checks these limits.
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

/// Returns the limits of extents of loops and allocated buffers that depend only on argument sizes. Limits that always
/// hold are omitted.
std::vector<SizeLimit> size_limits(const PrimFunc& func);

}  // namespace tilewright::analysis
