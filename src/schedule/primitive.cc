#include "schedule/primitive.h"

#include "analysis/changes.h"
#include "ir/build.h"
#include "target/memory_scope.h"

namespace tilewright::schedule {

Diagnostic refuse(std::string code, std::string message, std::initializer_list<NodeRef> nodes, std::string hint) {
  Diagnostic d = schedule_error(std::move(code), std::move(message), std::move(hint));
  for (const NodeRef& node : nodes) {
    if (node.defined()) d.nodes.push_back(keep(node));
  }
  return d;
}

Diagnostic refuse(std::string code, std::string message, const Place& place, std::string hint) {
  return refuse(std::move(code), std::move(message), {place.node()}, std::move(hint));
}

Diagnostic refuse(std::string code, const analysis::Obstacle& obstacle, std::string hint) {
  Diagnostic d = schedule_error(std::move(code), obstacle.why, std::move(hint));
  for (const NodeRef& node : obstacle.nodes) d.nodes.push_back(keep(node));
  return d;
}

std::string describe_loop(const For& loop) {
  return "loop '" + loop.loop_var->name_hint + "' (extent " + brief(loop.extent) + ")";
}
std::string describe_block(const Block& block) { return "block '" + block.name_hint + "'"; }
std::string describe(const Place& place) {
  return (*place.tree)[place.at].is_loop ? describe_loop(place.loop()) : describe_block(place.block());
}
std::string describe_in_nest(const Place& loop) {
  const Tree& tree = *loop.tree;
  for (int at = loop.at; tree.contains(loop.at, at); ++at) {
    if (tree[at].node->kind == Kind::kBlockRealize)
      return describe(loop) + " around " + describe_block(tree.block_at(at));
  }
  return describe(loop);
}

Status require_plain_loop(const Place& place, const char* code) {
  const For& loop = place.loop();
  if (loop.kind != ForKind::kSerial) {
    static constexpr const char* kNames[] = {"serial", "parallel", "vectorized", "unrolled", "thread-bound"};
    return refuse(code, describe(place) + " is already " + kNames[static_cast<int>(loop.kind)], place,
                  "change the loop structure first, then say who runs the iterations");
  }
  if (!loop.annotations.empty()) {
    return refuse(code, describe(place) + " has the annotation '" + loop.annotations.entries()[0].first + "'", place,
                  "a new loop cannot take it over; annotate afterwards, or unannotate first");
  }
  return Ok{};
}

Status require_zero_start(const Place& place, const char* code) {
  if (is_const_int(place.loop().min, 0)) return Ok{};
  return refuse(code, describe(place) + " starts at " + brief(place.loop().min) + ", not at 0", place,
                "write the loop from 0, and add its start to the indices");
}

Status require_kept_bounds(const Place& outer, const Place& place, const char* code) {
  const For& loop = place.loop();
  const Stmt& body = outer.loop().body;
  auto changes = [&](const Expr& bound) { return analysis::may_change(*place.tree, body, bound); };
  if (!changes(loop.min) && !changes(loop.extent)) return Ok{};
  return refuse(code, "the bounds of " + describe(place) + " read what " + describe(outer) + " changes",
                {place.node(), outer.node()}, "copy the bound to a buffer of its own before the loop");
}

Status require_memory_scope(const std::string& scope, const Place& block, const char* code) {
  if (is_memory_scope(scope)) return Ok{};
  std::string known;
  const MemoryScope* row = find_memory_scope(scope);
  if (row && !row->tags.empty()) {
    std::string tags(row->tags);
    for (size_t at = 0; (at = tags.find(' ', at)) != std::string::npos; at += 2) tags.replace(at, 1, ", ");
    known = "; behind \"" + std::string(row->prefix) + "\" there may be " + tags;
  }
  return refuse(code, "'" + scope + "' is not a storage scope", block,
                "use \"global\", \"local\" or \"shared\"" + known);
}

Plan give_blocks(uint32_t func, const Tree& tree, const std::vector<int>& positions) {
  Plan plan;
  plan.outputs.reserve(positions.size());
  for (int at : positions) plan.outputs.push_back(Handle::block(func, tree.block_at(at)));
  return plan;
}

Plan give_loops(uint32_t func, Ref<Block> root, const std::vector<Ref<Var>>& loops) {
  Plan plan;
  plan.func = func;
  plan.root = std::move(root);
  plan.outputs.reserve(loops.size());
  for (const Ref<Var>& loop_var : loops) plan.outputs.push_back(Handle::loop(func, loop_var));
  return plan;
}

Result<uint32_t> function_meant(const State& state, const std::string& name, const char* code, const char* purpose,
                                const char* call) {
  if (!name.empty()) return state.function(name);
  if (std::optional<uint32_t> func = state.working_function()) return *func;
  return refuse(code, std::string("the schedule does not know which function to ") + purpose + ": none is named 'main'",
                {}, std::string("say which one is meant: ") + call + " or work_on(func_name)");
}

}  // namespace tilewright::schedule
