// The loops around a block that reduces, as rfactor sees them: which of them step through the reduction.
#pragma once

#include <vector>

#include "ir/make.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// The loops around the block, outermost first, and what they drive.
struct ReductionChain {
  Place block, loop;
  std::vector<int> loops;
  std::vector<bool> reduces;  ///< per loop
  bool accumulates = false;   ///< the block has no init, and adds to what its elements hold
  size_t top = 0;             ///< the outermost of those that reduce and the factored one

  const For& at(size_t i) const { return block.tree->for_at(loops[i]); }
  bool is_factored_out(size_t i) const { return reduces[i] && loops[i] != loop.at; }
};

/// Says which loops reduce. Refused (rfactor/P3): loops that drive axes of both kinds, or whose ranges depend on
/// others.
Status find_roles(ReductionChain& chain);
/// Refused (rfactor/P4): other blocks in these loops, and ranges that are data where they might change.
Status check_place(const ReductionChain& chain);

/// Per axis of the block: whether its loops become axes of their own. Those of axes that the factored loop drives do,
/// and of axes that share a loop with one of them.
std::vector<bool> opened_axes(const ReductionChain& chain);
/// New variables for copies of the loops.
VarMap copied_loop_vars(const ReductionChain& chain);
/// Copies of the loops around a statement, with these variables. `only_kept`: without the loops that are factored out.
Stmt in_copied_loops(const ReductionChain& chain, const VarMap& loop_vars, Stmt body, bool only_kept = false);
/// Where partial results of a buffer go: with one dimension more.
Ref<Buffer> partial_buffer(const Ref<Buffer>& result, size_t position, const Expr& extent);
inline Ref<IterVar> axis(const Ref<Var>& v, const Ref<Range>& dom, IterType type) {
  return make<IterVar>({.dom = dom, .var = v, .iter_type = type, .thread_tag = ""});
}

}  // namespace tilewright::schedule
