#include "lower/gpu/groups_in_flight.h"

#include <algorithm>

#include "ir/async_copy.h"
#include "ir/traverse.h"

namespace tilewright::lower {
namespace {

GroupsInFlight most(GroupsInFlight a, GroupsInFlight b) {
  return a && b ? GroupsInFlight(std::max(*a, *b)) : GroupsInFlight();
}

bool has_groups(const Stmt& s) {
  return any_node(
      s, [](const Ref<Evaluate>& step) { return closes_group(step->value) || is_wait_for_copies(step->value); });
}

}  // namespace

GroupsInFlight groups_after(const Stmt& s, GroupsInFlight before) {
  GroupsInFlight now = before;
  visit(
      s, on<For, While>([&](const auto& loop, Visitor&) { now = groups_around(loop->body, now); }),
      [&](const Ref<IfThenElse>& branch, Visitor&) {
        const GroupsInFlight yes = groups_after(branch->then_case, now);
        now = most(yes, branch->else_case.defined() ? groups_after(branch->else_case, now) : now);
      },
      [&](const Ref<Evaluate>& step, Visitor&) {
        if (closes_group(step->value) && now) ++*now;
        if (const auto running = running_behind(step->value)) now = now ? std::min(*now, *running) : *running;
      });
  return now;
}

GroupsInFlight groups_around(const Stmt& body, GroupsInFlight before) {
  if (!has_groups(body)) return before;
  // The bound after an iteration grows with the bound before it, so a bound that a second iteration does not increase
  // is a fixed point, valid for any number of iterations.
  GroupsInFlight now = before;
  for (int i = 0; i < 2; ++i) {
    const GroupsInFlight next = most(now, groups_after(body, now));
    if (next == now) return now;
    now = next;
  }
  return most(now, groups_after(body, now)) == now ? now : GroupsInFlight();
}

}  // namespace tilewright::lower
