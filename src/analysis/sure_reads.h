// Which elements a block surely reads: the schedule may read them ahead of the block, since they are in bounds there.
//
//   C[v] = B[J[v]]                                          surely J[v] and B[J[v]]
//   C[v] = T.if_then_else(P[v] >= 0, B[J[P[v]]], 0.0)       surely P[v]; where P[v] is -1, J[P[v]] is out of bounds
//
// The counterpart of sure_writes.h. What a block declares to read says which elements it may read.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/analyzer.h"

namespace tilewright::analysis {

class SureReads {
 public:
  /// The reads of a block below the statement `outside`, in terms of the loops around it: of none where a loop between
  /// may have no iteration, or a condition decides whether the block runs. `run`: loops that are known to have some.
  void add(const Tree& tree, int outside, int block, arith::Analyzer& analyzer, const std::vector<int>& run = {});
  /// What the block reads whenever it runs, in terms of its axes.
  void add(const Ref<Block>& block);
  bool contains(const Ref<BufferLoad>& load, arith::Analyzer& analyzer) const;

 private:
  std::vector<Ref<BufferLoad>> loads_;
};

}  // namespace tilewright::analysis
