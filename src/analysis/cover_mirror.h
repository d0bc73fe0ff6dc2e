// Coverage that needs no arithmetic: where two blocks are tiled alike, each instance of the reader has one of the
// writer that touches the same elements, however their indices are computed.
//
//   for x in range(3): B[f(o) + x] = ..     where f(o) + x < m
//   for y in range(3): .. = B[f(o) + y]     where f(o) + y < m: what y reads, x = y has written
#pragma once

#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// A region touched by iterations of loops, under a condition.
struct Touching {
  arith::Region region;
  arith::IterDomains loops;
  Expr condition;
};

/// Whether each iteration of `read` has one of `write`, with loops of the same range in place of its own, that touches
/// the same elements, where the conditions are the same, too. The loops are those around the one, and not the other.
bool mirrors(const Touching& write, const Touching& read);
/// Whether the instances of two blocks mirror each other.
bool mirrors(const BlockRealize& writer, const Ref<BufferRegion>& write, const arith::IterDomains& writing,
             const BlockRealize& reader, const Ref<BufferRegion>& read, const arith::IterDomains& reading);

}  // namespace tilewright::analysis
