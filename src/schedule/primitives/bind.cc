// Let the iterations of a loop run on the threads of a GPU.
//
//   Before                                After  sch.bind(i, "threadIdx.x")
//   for i in range(128):                  for i in T.thread_binding(128, thread="threadIdx.x"):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(128, i)           vi = T.axis.spatial(128, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// Requires  P1 everything below is in blocks
//           P2 their instances may run in any order, unless the loop has one iteration
//           P3 the loop drives no reduction; a loop bound to threadIdx may drive a commutative one, or one that rfactor
//              knows (argmax, several sums), and nothing else of that block: the threads put its parts together. What
//              has no init adds to a value by a single store
//           P4 no two iterations write the same element
//           P5 none reads what another one writes
//           P6 the axis is blockIdx, threadIdx or vthread with .x, .y or .z, or vthread alone: one more axis each time
//           P7 a loop around or below with the same axis means the same threads: the inner one then runs one iteration
//              on each. They have the same range, what stands below depends on the inner one only and does not
//              accumulate over it, and what it writes is in memory that the threads share, or used by the same thread
#include "schedule/execution.h"

#include "analysis/threads.h"
#include "schedule/primitives/bind.h"

namespace tilewright::schedule {
namespace {

constexpr ExecutionCodes kBindCodes = {"bind/P1", "bind/P2", "bind/P3", "bind/P4", "bind/P5"};

/// Nested loops with the same thread axis mean the same threads.
Status check_threads(const Ref<Block>& root, const Ref<Var>& loop_var) {
  const Tree& tree = Tree::of(root);
  int loop = tree.loop(loop_var);
  auto obstacle = analysis::why_threads_differ(tree, loop);
  if (!obstacle) return Ok{};
  return refuse("bind/P7", *obstacle,
                "a loop inside of one with the same axis runs one iteration on each thread: give it the same extent, "
                "and let what it computes go to memory that the threads share");
}

}  // namespace

Result<Plan> plan(const State& state, const Bind& bind) {
  TW_TRY(place, state.find(bind.loop));
  if (!ThreadAxis::parse(bind.thread_axis)) {
    return refuse("bind/P6", "'" + bind.thread_axis + "' is not a thread axis", place,
                  "use blockIdx, threadIdx or vthread with .x, .y or .z");
  }
  TW_TRY(plan, set_kind(state, bind.loop, ForKind::kThreadBinding, kBindCodes, bind.thread_axis));
  TW_RETURN_IF_ERROR(check_threads(plan.root, place.loop().loop_var));
  return plan;
}

}  // namespace tilewright::schedule
