// Proves coverage by matching loops of the writer with loops of the reader: if renaming the loop variables makes the
// index expressions structurally equal, each element read has been written. No arithmetic is needed, so indices may be
// arbitrary expressions. cover.h tries this for tiles that interval arithmetic cannot compare.
//
//   for x in range(3): B[f(o) + x] = ..     where f(o) + x < m
//   for y in range(3): .. = B[f(o) + y]     where f(o) + y < m      iteration x = y has written the element
#pragma once

#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// A region that the iterations of `loops` access where `condition` holds.
struct ConditionalAccess {
  arith::Region region;
  arith::IterDomains loops;
  Expr condition;
};

/// Whether the loops of `write` can be replaced by loops of `read` with the same ranges so that both regions are
/// structurally equal and the condition of `read` implies that of `write`. `loops` are the loops around one access that
/// are not around the other.
bool mirrors(const ConditionalAccess& write, const ConditionalAccess& read);
/// mirrors() for accesses of two blocks, with their bindings and predicates. False if the writer has reduction
/// axes.
bool mirrors(const BlockRealize& writer, const Ref<BufferRegion>& write, const arith::IterDomains& writing,
             const BlockRealize& reader, const Ref<BufferRegion>& read, const arith::IterDomains& reading);

}  // namespace tilewright::analysis
