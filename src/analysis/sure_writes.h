// Computes what a statement surely stores whenever it runs: the counterpart of block_access_region.h, which computes
// what it may store.
//
//   for ax in range(4): C[v * 4 + ax] = ...            surely C[v * 4:v * 4 + 4]
//   if A[v] > 5: C[v] = A[v]                           nothing: an element may keep its value
//   if A[v] > 5: C[v] = A[v]  else: C[v] = 0           surely C[v]
#pragma once

#include <optional>

#include "arith/int_set.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// `stmt` stores to every element of the region. `block`: whose views the statement may use.
bool surely_writes(const Stmt& stmt, const Block& block, const Ref<BufferRegion>& region, arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
