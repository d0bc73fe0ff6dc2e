// <One sentence: what happens to the program.>
//
//   Before                                After  sch.@name@(<arguments>)
//   <at most 8 lines>                     <the same program afterwards>
//
// Requires  P1 <what has to hold; one number for each refusal below>
#include "schedule/primitives/@name@.h"

#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const @Name@& @name@) {
  TW_TRY(place, state.find(@name@.<loop or block>));
  if (<P1 does not hold>) {
    return refuse("@name@/P1", "<what was observed, and the rule> " + describe(place), {place.node()},
                  "<what to do about it>");
  }
  TreeEdit edit(*place.tree);
  edit.replace(place.at, <the new statement>);
  return give_loops(place.func, edit.finish(), {<the variables of new loops, if it gives any>});
}

}  // namespace tilewright::schedule
