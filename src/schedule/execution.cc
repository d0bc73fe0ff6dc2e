#include "schedule/execution.h"

#include "analysis/independence.h"
#include "ir/build.h"
#include "schedule/edit.h"

namespace tilewright::schedule {
namespace {

struct Rule {
  const char* code;
  const char* hint;
};
Rule rule_of(analysis::Conflict conflict) {
  switch (conflict) {
    case analysis::Conflict::kBareStatement:
      return {"/P1", "put it into a block, so that the script says what it reads and writes"};
    case analysis::Conflict::kOtherBlock:
      return {"/P2", ""};
    case analysis::Conflict::kReduction:
      return {"/P3", "take a loop that drives spatial axes only"};
    case analysis::Conflict::kWrite:
      return {"/P4", ""};
    case analysis::Conflict::kRead:
      return {"/P5", ""};
  }
  return {"", ""};
}

}  // namespace

Result<Plan> set_kind(const State& state, LoopRV rv, ForKind kind, const std::string& method, bool private_buffers,
                      const std::string& thread_axis) {
  TW_TRY(place, state.find(rv));
  if (auto problem = analysis::why_dependent(*place.tree, place.at, private_buffers)) {
    Rule rule = rule_of(problem->conflict);
    return refuse(method + rule.code, problem->obstacle, rule.hint);
  }
  For loop = place.loop();
  loop.kind = kind;
  loop.thread_binding = {};
  if (kind == ForKind::kThreadBinding) {
    loop.thread_binding = make<IterVar>({.dom = {},
                                         .var = var(thread_axis, loop.loop_var.dtype()),
                                         .iter_type = IterType::kThreadIndex,
                                         .thread_tag = thread_axis});
  }
  TreeEdit edit(*place.tree);
  edit.replace(place.at, make<For>(std::move(loop), place.node().span()));
  return give_loops(place.func, edit.finish(), {});
}

}  // namespace tilewright::schedule
