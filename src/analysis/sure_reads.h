// Elements that a block reads whenever it runs. They are in bounds, so a schedule may read them before the block.
//
//   C[v] = B[J[v]]                                          J[v] and B[J[v]]
//   C[v] = T.if_then_else(P[v] >= 0, B[J[P[v]]], 0.0)       P[v] only: if P[v] is -1, J[P[v]] is out of bounds
//
// The counterpart of sure_writes.h. The regions that a block declares say which elements it may read.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/analyzer.h"

namespace tilewright::analysis {

class SureReads {
 public:
  /// Adds the reads of a block below the statement `outside`, in terms of the enclosing loops. Adds none if the block
  /// has a predicate, or if a loop in between may have no iteration. `run`: loops that are known to iterate.
  void add(const Tree& tree, int outside, int block, arith::Analyzer& analyzer, const std::vector<int>& run = {});
  /// Adds the reads of the block, in terms of its axes.
  void add(const Ref<Block>& block);
  bool contains(const Ref<BufferLoad>& load, arith::Analyzer& analyzer) const;

 private:
  std::vector<Ref<BufferLoad>> loads_;
};

}  // namespace tilewright::analysis
