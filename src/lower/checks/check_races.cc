// Refuse parallel and vectorized loops, and loops bound to blocks and threads, whose iterations provably depend on one
// another.
//
//   for i in T.parallel(8):      refused: iteration i = 0 writes A[1], and iteration i = 1 reads it
//     A[i + 1] = A[i] + 1.0
//
// Loops for which neither can be proved are compiled as they are. For parallel loops, and for loops bound to blocks and
// threads that write at indices loaded from memory, a note is issued.
//
// Needs      blocks; buffers at their allocation locations
// Ensures    the same function
// Placement  after plan_allocations: what each iteration has for itself is no race. Not in a search, whose candidates
//            were made by primitives from a program that was checked
#include "analysis/race_witness.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

std::string how(const For& loop) {
  return loop.thread_binding.defined() ? "bound to " + std::string(loop.thread_binding->thread_tag) : "parallel";
}

}  // namespace

PassResult check_races(const Ref<PrimFunc>& func, PassContext& context) {
  if (!context.check_races) return func;
  if (auto race = analysis::find_race(func, context.function)) {
    Diagnostic refusal = script_error("lower/race", std::move(race->message),
                                      "leave this loop serial, or let each iteration have its own elements");
    refusal.span = race->site.span() ? race->site.span() : race->loop.span();
    refusal.nodes.push_back(keep(race->site));
    if (race->other != race->site) refusal.nodes.push_back(keep(race->other));
    return refusal;
  }
  for (const analysis::UnprovedLoop& unproved : analysis::unproved_parallel_loops(func)) {
    context.notes.push_back({"lower/unproved-parallel", context.function,
                             "loop '" + unproved.loop->loop_var->name_hint + "' is " + how(*unproved.loop) +
                                 ", and it is not proved that its iterations are independent: " + unproved.why,
                             unproved.loop.span()});
  }
  return func;
}

}  // namespace tilewright::lower
