#include "schedule/primitive.h"

#include "ir/build.h"

namespace tilewright::schedule {
namespace {

/// Binding strength of operators, as in Python.
struct Text {
  std::string text;
  int strength;
};
constexpr int kAtom = 9, kProduct = 5, kSum = 4, kCompare = 3, kAnd = 2;

Text expr_text(const Expr& e, int depth);

Text infix(const char* op, const Expr& a, const Expr& b, int strength, int depth) {
  auto side = [&](const Expr& e, bool right) {
    Text t = expr_text(e, depth + 1);
    bool wrap = right ? t.strength <= strength : t.strength < strength;
    return wrap ? "(" + t.text + ")" : t.text;
  };
  return {side(a, false) + " " + op + " " + side(b, true), strength};
}

Text expr_text(const Expr& e, int depth) {
  if (depth > 12) return {"...", kAtom};
  if (auto value = const_int(e)) return {std::to_string(*value), *value < 0 ? kSum : kAtom};
  if (const Var* v = e.as<Var>()) return {v->name_hint, kAtom};
  if (const Add* n = e.as<Add>()) return infix("+", n->a, n->b, kSum, depth);
  if (const Sub* n = e.as<Sub>()) return infix("-", n->a, n->b, kSum, depth);
  if (const Mul* n = e.as<Mul>()) return infix("*", n->a, n->b, kProduct, depth);
  if (const FloorDiv* n = e.as<FloorDiv>()) return infix("//", n->a, n->b, kProduct, depth);
  if (const FloorMod* n = e.as<FloorMod>()) return infix("%", n->a, n->b, kProduct, depth);
  if (const LT* n = e.as<LT>()) return infix("<", n->a, n->b, kCompare, depth);
  if (const LE* n = e.as<LE>()) return infix("<=", n->a, n->b, kCompare, depth);
  if (const GE* n = e.as<GE>()) return infix(">=", n->a, n->b, kCompare, depth);
  if (const GT* n = e.as<GT>()) return infix(">", n->a, n->b, kCompare, depth);
  if (const EQ* n = e.as<EQ>()) return infix("==", n->a, n->b, kCompare, depth);
  if (const And* n = e.as<And>()) return infix("and", n->a, n->b, kAnd, depth);
  auto call = [&](const char* name, const Expr& a, const Expr& b) {
    return Text{std::string(name) + "(" + expr_text(a, depth + 1).text + ", " + expr_text(b, depth + 1).text + ")",
                kAtom};
  };
  if (const Min* n = e.as<Min>()) return call("min", n->a, n->b);
  if (const Max* n = e.as<Max>()) return call("max", n->a, n->b);
  if (const Cast* n = e.as<Cast>()) return expr_text(n->value, depth);
  if (const BufferLoad* n = e.as<BufferLoad>()) {
    std::string indices;
    for (const Expr& i : n->indices) indices += (indices.empty() ? "" : ", ") + expr_text(i, depth + 1).text;
    return {n->buffer->name + "[" + indices + "]", kAtom};
  }
  return {std::string(kind_name(e.kind())) + "(...)", kAtom};
}

}  // namespace

Diagnostic refuse(std::string code, std::string message, std::initializer_list<NodeRef> nodes, std::string hint) {
  Diagnostic d = schedule_error(std::move(code), std::move(message), std::move(hint));
  for (const NodeRef& node : nodes) {
    if (node.defined()) d.nodes.push_back(keep(node));
  }
  return d;
}

std::string brief(const Expr& e) { return e.defined() ? expr_text(e, 0).text : "None"; }

std::string brief(const Ref<BufferRegion>& region) {
  std::string text;
  for (const Ref<Range>& r : region->region) {
    if (!text.empty()) text += ", ";
    text += brief(r->min);
    if (!is_const_int(r->extent, 1)) text += ":" + brief(r->min + r->extent);
  }
  return region->buffer->name + "[" + text + "]";
}

std::string describe_loop(const For& loop) {
  return "loop '" + loop.loop_var->name_hint + "' (extent " + brief(loop.extent) + ")";
}
std::string describe_block(const Block& block) { return "block '" + block.name_hint + "'"; }
std::string describe(const Place& place) {
  return (*place.tree)[place.at].is_loop ? describe_loop(place.loop()) : describe_block(place.block());
}

Status require_plain_loop(const Place& place, const char* code) {
  const For& loop = place.loop();
  if (loop.kind != ForKind::kSerial) {
    static constexpr const char* kNames[] = {"serial", "parallel", "vectorized", "unrolled", "thread-bound"};
    return refuse(code, describe(place) + " is already " + kNames[static_cast<int>(loop.kind)], {place.node()},
                  "change the loop structure first, then say who runs the iterations");
  }
  if (!loop.annotations.empty()) {
    return refuse(code, describe(place) + " has the annotation '" + loop.annotations.entries()[0].first + "'",
                  {place.node()}, "a new loop cannot take it over; annotate afterwards, or unannotate first");
  }
  return Ok{};
}

Status require_zero_start(const Place& place, const char* code) {
  if (is_const_int(place.loop().min, 0)) return Ok{};
  return refuse(code, describe(place) + " starts at " + brief(place.loop().min) + ", not at 0", {place.node()});
}

Plan give_blocks(uint32_t func, const Tree& tree, const std::vector<int>& positions) {
  Plan plan;
  for (int at : positions) plan.outputs.push_back(Handle::block(func, tree.block_at(at)));
  return plan;
}

Plan give_loops(uint32_t func, Ref<Block> root, const std::vector<Ref<Var>>& loops) {
  Plan plan;
  plan.func = func;
  plan.root = std::move(root);
  for (const Ref<Var>& loop_var : loops) plan.outputs.push_back(Handle::loop(func, loop_var));
  return plan;
}

}  // namespace tilewright::schedule
