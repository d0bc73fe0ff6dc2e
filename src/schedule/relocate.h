// Moves a block under another loop. Shared by compute_at and reverse_compute_at, which differ in how they choose the
// axis values that the block computes there (solve_axes.h).
#pragma once

#include <functional>

#include "analysis/independence.h"
#include "analysis/scope.h"
#include "schedule/primitive.h"
#include "schedule/solve_axes.h"

namespace tilewright::schedule {

/// Error codes of refusals, which differ between the primitives.
struct MoveCodes {
  const char *role, *scope, *writer, *index, *instances, *inputs, *results, *execution;
};

struct Move {
  Place block, loop;
  bool preserve_unit_loops;
  int64_t index;    ///< the user's index: -1 for the last possible position, -2 for the first
  int first, last;  ///< possible positions among the statements of the loop, both included
  const MoveCodes& codes;
  /// Whether instances may run that did not run before, provided that each of them is safe.
  bool may_add_instances;
};

/// Returns the statements of a loop's body.
std::vector<int> statements_of(const Tree& tree, int loop);
/// Returns the index of the statement that contains position `at`; -1 if none does.
int statement_with(const Tree& tree, const std::vector<int>& statements, int at);

/// Plans the move of the block under the loop, where it runs over `axes`. Refuses an index out of range, an unknown set
/// of instances before the move, incomplete inputs, results that readers would miss, and enclosing loops whose
/// iterations would become dependent. `also` checks the new program, where the block is at `moved`, before the results
/// are checked.
Result<Plan> finish_move(const Move& move, const AxisSets& axes,
                         const std::function<Status(const Tree& after, int moved)>& also = {});

/// Checks that block and loop are in one scope, and that the loop is not around the block.
Status check_same_scope(const Move& move);
/// Checks that the block is complete or a regular reduction.
Status check_block_role(const Move& move);
/// Checks that the steps of the block's reduction keep their order, if that matters.
Status check_order_of_steps(const Move& move, const Tree& after, int moved);
/// Checks that no statement outside of blocks conflicts with the block, so that it can move past all of them.
/// `also_reads`: two reads of a buffer conflict, too, because the step removes the buffer.
Status check_bare_statements(const Place& block, const analysis::Scope& scope, const char* code,
                             bool also_reads = true);
/// Checks also that no other block writes the block's buffers, and that no earlier one reads them. `self`: the number
/// of the block in its scope.
Status check_only_writer(const Place& block, const analysis::Scope& scope, int self, const char* code,
                         bool also_reads = true);
/// Returns the part of the block's predicate that is the same for all instances and everywhere in the scope.
Expr invariant_condition(const Tree& tree, int block);
/// Returns the exact box of axis values for which the block runs at its current location. Refuses with `code` if that
/// is not known.
Result<arith::Box> known_instances(const Place& block, const char* code);
/// Checks that the block writes the same elements, in all iterations of its loops, before and after a step.
Status check_same_outputs(const Tree& before, int old_at, const Tree& after, int new_at, const char* code);
/// Whether the block runs for all values of its axes.
bool runs_whole_domain(const Tree& tree, int at);
/// Checks that the parallel, vectorized and thread-bound loops around the block `at`, and around statements that share
/// a buffer with it, still have independent iterations. Only buffers of this block are checked, so a step that changes
/// several blocks calls this for each of them. `only`: the conflict that the step may cause; others are not checked.
Status recheck_execution(const Tree& tree, int at, const char* code, std::optional<analysis::Conflict> only = {});
/// Like recheck_execution(). Also checks that thread-bound loops inside of the moved block have the extents of the
/// kernel.
Status recheck_moved(const Tree& tree, int at, const char* code);

}  // namespace tilewright::schedule
