// Matrices of scope "m16n8k8.matrixA", "...B" and "...C" become memory of scope "warp", in which lane l has registers
// l * n to l * n + n - 1 (ir/warp_steps.h).
//
//   Before                                                    After
//   C = T.allocate([256], "float32", "m16n8k8.matrixC")       C = T.allocate([256], "float32", "warp")
//   for tx in T.thread_binding(32, "threadIdx.x"):            for tx in T.thread_binding(32, "threadIdx.x"):
//     C[tx // 4, tx % 4 * 2] = T.float32(0)                     C[tx * 8] = T.float32(0)
//   T.ptx_mma(..., C.data, 4)                                 for tx in T.thread_binding(32, "threadIdx.x"):
//                                                               T.ptx_mma(..., C.data, tx * 8 + 4)
//
// Which register holds an element is the map of ldmatrix and mma.m16n8k8: A is loaded by tiles of 32 x 8 elements, B by
// tiles of 8 x 32, which the load transposes, and C is computed by tiles of 16 x 8.
#pragma once

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::lower {

/// ScriptError "lower/mma-registers" for matrices that are no whole tiles.
Result<Stmt> lower_mma_registers(const Stmt& body);

}  // namespace tilewright::lower
