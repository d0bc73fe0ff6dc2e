// Classifies the loops around a reduction block for rfactor: which of them drive reduction axes.
#pragma once

#include <vector>

#include "ir/make.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// The loops around the block, outermost first.
struct ReductionChain {
  Place block, loop;
  std::vector<int> loops;
  std::vector<bool> reduces;       ///< per loop, whether it drives a reduction axis
  bool accumulates = false;        ///< whether the block has no init, and accumulates into its elements
  size_t outermost_reduction = 0;  ///< the outermost of the reduction loops and the factored loop

  const For& at(size_t i) const { return block.tree->for_at(loops[i]); }
  bool is_factored_out(size_t i) const { return reduces[i] && loops[i] != loop.at; }
};

/// Classifies the loops. Refuses (rfactor/P3) loops that drive axes of both kinds, or whose ranges depend on other
/// loops.
Status classify_loops(ReductionChain& chain);
/// Refuses (rfactor/P4) other blocks in these loops, and ranges that read memory which may change.
Status check_location(const ReductionChain& chain);

/// Returns, per axis of the block, whether its loops become axes of the new block: those of axes that the factored loop
/// drives, and of axes that share a loop with one of these.
std::vector<bool> axes_of_new_block(const ReductionChain& chain);
/// Returns new variables for copies of the loops.
VarMap copied_loop_vars(const ReductionChain& chain);
/// Wraps a statement in copies of the loops, with these variables. `skip_factored_out`: omits the loops that are
/// factored out.
Stmt in_copied_loops(const ReductionChain& chain, const VarMap& loop_vars, Stmt body, bool skip_factored_out = false);
/// Returns the buffer for partial results of a buffer, which has one more dimension.
Ref<Buffer> partial_buffer(const Ref<Buffer>& result, size_t position, const Expr& extent);
inline Ref<IterVar> axis(const Ref<Var>& v, const Ref<Range>& dom, IterType type) {
  return make<IterVar>({.dom = dom, .var = v, .iter_type = type, .thread_tag = ""});
}

}  // namespace tilewright::schedule
