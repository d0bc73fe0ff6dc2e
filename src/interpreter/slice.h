// The part of a function that one element of a result depends on: a backward slice.
//
//   for i, j, k in T.grid(512, 512, 512): C[vi, vj] += A[vi, vk] * B[vk, vj]
//   for i, j in T.grid(512, 512):         D[vi, vj] = max(C[vi, vj], 0)
//
//   slice of D[7, 9]:   for i, j, k over [7, 8) x [9, 10) x [0, 512): ...; for i, j over [7, 8) x [9, 10): ...
//
// Theorem. Let demand be a box for each written buffer, such that (1) it holds the wanted element, (2) every store that
// may reach the demand of its buffer is kept, in all iterations of its loops in which it may, and (3) the demand holds
// what kept stores, and the conditions, extents and bindings around them, read. Then each demanded element is written
// by the same instances of the same stores in the same order, with the same values, as in the whole function. The
// demand is the least fixed point, found from below; boxes that keep growing become whole buffers. It does not look at
// the order of statements, so that it may keep too much, but never too little.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::interpreter {

/// The function reduced to what element `index` of the buffer depends on. Returns nothing if the slice cannot be
/// computed or would be the whole function: views of another type or rank, allocations of the lowered form, opaque
/// calls, loops that are all needed.
std::optional<Ref<PrimFunc>> slice(const Ref<PrimFunc>& func, const Ref<Buffer>& buffer,
                                   const std::vector<int64_t>& index);

}  // namespace tilewright::interpreter
