// Reads of a block before its body: data in the bindings of its axes, in their domains, and in its predicate.
//
//   with T.block("B"):
//     vi = T.axis.spatial(16, I[i])     reads I[i]
//     vp = T.axis.reduce(P[i], p)       reads P[i]
//     T.where(J[i] < 4)                 reads J[i]
//     T.reads(A[vi])                    (a declared read of the body)
//
// All analyses take these reads from here, in addition to the regions that blocks declare; accesses.h visits the same
// expressions.
#pragma once

#include <vector>

#include "analysis/tree.h"

namespace tilewright::analysis {

/// Calls `found` with each expression evaluated before a block runs: its predicate, its axes' values and domains.
template <class F>
void for_each_bound(const BlockRealize& realize, F&& found) {
  found(realize.predicate);
  for (const Expr& value : realize.iter_values) found(value);
  for (const Ref<IterVar>& axis : realize.block->iter_vars) {
    if (!axis->dom.defined()) continue;
    found(axis->dom->min);
    found(axis->dom->extent);
  }
}
/// Whether one of them reads a buffer.
bool binds_data(const BlockRealize& realize);

/// The elements that the expression reads, one by one.
void add_single_reads(const Expr& e, std::vector<Ref<BufferRegion>>& regions);
/// Single elements, in terms of what is around the block. Blocks do not declare them.
std::vector<Ref<BufferRegion>> binding_reads(const BlockRealize& realize);
/// The binding reads of a block of a tree; a shortcut for blocks without such reads, which are most.
inline std::vector<Ref<BufferRegion>> binding_reads(const Tree& tree, int block) {
  if (!tree[block].binds_data) return {};
  return binding_reads(*tree.realize_at(block));
}
/// Whether one of them is an element of the buffer, by its own name.
bool binding_reads(const BlockRealize& realize, const Ref<Buffer>& buffer);

}  // namespace tilewright::analysis
