// Let the iterations of a loop run on the threads of a GPU.
//
//   Before                                After  sch.bind(i, "threadIdx.x")
//   for i in range(128):                  for i in T.thread_binding(128, thread="threadIdx.x"):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(128, i)           vi = T.axis.spatial(128, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// Requires  P1 everything below is in blocks
//           P2 their instances may run in any order
//           P3 the loop drives no reduction; a loop bound to threadIdx may drive a commutative one with an init, and
//              nothing else of that block: the threads put its parts together
//           P4 no two iterations write the same element
//           P5 none reads what another one writes
//           P6 the axis is blockIdx, threadIdx or vthread with .x, .y or .z
//           P7 no loop around or below has the same axis
#include "schedule/execution.h"

#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::schedule {
namespace {

constexpr ExecutionCodes kCodes = {"bind/P1", "bind/P2", "bind/P3", "bind/P4", "bind/P5"};

bool is_thread_axis(const std::string& tag) {
  size_t dot = tag.find('.');
  std::string_view name = std::string_view(tag).substr(0, dot);
  bool known = name == "blockIdx" || name == "threadIdx" || name == "vthread";
  return known && dot != std::string::npos && tag.size() == dot + 2 && tag[dot + 1] >= 'x' && tag[dot + 1] <= 'z';
}

}  // namespace

Result<Plan> plan(const State& state, const Bind& bind) {
  TW_TRY(place, state.find(bind.loop));
  if (!is_thread_axis(bind.thread_axis)) {
    return refuse("bind/P6", "'" + bind.thread_axis + "' is no thread axis", {place.node()},
                  "use blockIdx, threadIdx or vthread with .x, .y or .z");
  }
  NodeRef same;
  auto look = [&](const NodeRef& node) {
    const For* loop = node.as<For>();
    if (loop && loop->thread_binding.defined() && loop->thread_binding->thread_tag == bind.thread_axis) same = node;
  };
  for (int at = (*place.tree)[place.at].parent; at != Tree::kNone; at = (*place.tree)[at].parent) {
    look(place.tree->stmt(at));
  }
  visit(place.loop().body, [&](const Ref<For>& below) { look(below); });
  if (same.defined()) {
    return refuse(
        "bind/P7",
        describe(place) + " and " + describe_loop(*same.as<For>()) + " would both be bound to " + bind.thread_axis,
        {place.node(), same}, "each axis can be taken once along a nest");
  }
  return set_kind(state, bind.loop, ForKind::kThreadBinding, kCodes, bind.thread_axis);
}

}  // namespace tilewright::schedule
