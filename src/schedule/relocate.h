// Moving a block under another loop: what compute_at and reverse_compute_at have in common.
#pragma once

#include <functional>

#include "analysis/scope.h"
#include "schedule/primitive.h"
#include "schedule/solve_axes.h"

namespace tilewright::schedule {

/// The codes of the refusals that compute_at and reverse_compute_at share.
struct MoveCodes {
  const char *role, *scope, *writer, *index, *instances, *inputs, *results, *execution;
};

struct Move {
  Place block, loop;
  bool preserve_unit_loops;
  int64_t index;    ///< index as the user gives it: -1 last, -2 first
  int first, last;  ///< possible places among the statements of the loop, both included
  const MoveCodes& codes;
  /// Instances that did not run before may run now, if every one of them is harmless.
  bool may_add_instances;
};

/// The statements of a loop's body: the parts of a sequence, or the one that it is.
std::vector<int> statements_of(const Tree& tree, int loop);
/// Returns which of these statements contains the position; -1 if none does.
int statement_with(const Tree& tree, const std::vector<int>& statements, int at);

/// The step that puts the block under the loop, running over `axes`. Refused: the index; that nothing is known about
/// which instances ran before; inputs that are not complete; results that their readers would not find; loops around
/// whose iterations would no longer be independent. `also` checks more of the new program, where the block is at
/// `moved`, before its results are looked at.
Result<Plan> finish_move(const Move& move, const AxisSets& axes,
                         const std::function<Status(const Tree& after, int moved)>& also = {});

/// Checks that both are in one function and scope, and that the loop is not around the block.
Status check_same_scope(const Move& move);
/// The block is complete or a regular reduction.
Status check_block_role(const Move& move);
/// The steps of its reduction come in the same order as before, where that matters.
Status check_order_of_steps(const Move& move, const Tree& after, int moved);
/// No statement outside of blocks uses what the block does, so that it may pass all of them.
/// `also_reads`: nor one that only reads what the block reads, as where the buffer goes.
Status check_bare_statements(const Place& block, const analysis::Scope& scope, const char* code,
                             bool also_reads = true);
/// Checks also that no other block writes the block's buffers, and none before it reads them. `self`: the block in its
/// scope.
Status check_only_writer(const Place& block, const analysis::Scope& scope, int self, const char* code,
                         bool also_reads = true);
/// Returns the part of the block's condition that is the same for all instances, wherever the block is in the scope.
Expr steady_condition(const Tree& tree, int block);
/// The instances that run of a block where it stands, if any: all are within the box, and it holds no others. CODE
/// where that is not known.
Result<arith::Box> known_instances(const Place& block, const char* code);
/// Over all its loops, a block writes the same region as before, as far as its boxes say.
Status check_same_outputs(const Tree& before, int old_at, const Tree& after, int new_at, const char* code);
/// The block runs for all values of its axes.
bool runs_whole_domain(const Tree& tree, int at);
/// Loops that are parallel, vectorized or bound to threads still have independent iterations: those around the block
/// `at`, and around all that shares a buffer with it. Asked are the buffers of that block, so a step that changes other
/// accesses too asks for each of the blocks.
Status recheck_execution(const Tree& tree, int at, const char* code);
/// recheck_execution, and that thread-bound loops inside the moved block have the extents that the kernel requires.
Status recheck_moved(const Tree& tree, int at, const char* code);

}  // namespace tilewright::schedule
