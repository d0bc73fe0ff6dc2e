#include "analysis/brief.h"

#include "ir/build.h"

namespace tilewright::analysis {
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

std::string brief(const Ref<Buffer>& buffer, const arith::Box& box) {
  std::string text;
  for (const arith::IntSet& set : box) {
    if (!text.empty()) text += ", ";
    if (set.is_point()) {
      text += brief(set.min);
    } else {
      text += (set.min.defined() ? brief(set.min) : "?") + ":" + (set.max.defined() ? brief(set.max + 1) : "?");
    }
  }
  return buffer->name + "[" + text + "]";
}

}  // namespace tilewright::analysis
