#include "analysis/brief.h"

#include <fmt/format.h>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/infix.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

using enum Infix::Precedence;

/// Deeper parts are not shown.
constexpr int kMaxDepth = 12;

std::string text_of(const Expr& e, int min_precedence, int depth);

std::string list_of(const std::vector<Expr>& exprs, int depth) {
  std::string text;
  for (const Expr& e : exprs) text += (text.empty() ? "" : ", ") + text_of(e, kLowest, depth + 1);
  return text;
}

std::string grouped(std::string text, bool needed) { return needed ? "(" + std::move(text) + ")" : text; }

std::string call_text(const Expr& e, int depth) {
  std::vector<Expr> args;
  for_each_child(e, [&](const NodeRef& child, Role) {
    if (child.sort() == Sort::kExpr && !child.is<Op>() && !child.is<GlobalVar>()) args.emplace_back(child);
  });
  std::string name = kind_name(e.kind());
  if (e.is<Min>()) name = "min";
  if (e.is<Max>()) name = "max";
  if (e.is<Mod>()) name = "truncmod";
  if (const Call* call = e.as<Call>()) {
    const GlobalVar* function = call->op.as<GlobalVar>();
    if (function) return function->name_hint + "(" + list_of(args, depth) + ")";
    name = call->op.as<Op>()->name;
    if (name.starts_with("tir.")) name = name.substr(4);
  }
  return "T." + name + "(" + list_of(args, depth) + ")";
}

std::string text_of(const Expr& e, int min_precedence, int depth) {
  if (depth > kMaxDepth) return "...";
  if (auto value = const_int(e)) {
    if (e.dtype().is_bool()) return *value ? "True" : "False";
    return grouped(std::to_string(*value), *value < 0 && min_precedence > kSum);
  }
  if (auto value = const_float(e)) return fmt::format("{:#}", *value);
  if (const Var* v = e.as<Var>()) return v->name_hint;
  if (const Cast* n = e.as<Cast>()) return text_of(n->value, min_precedence, depth);
  if (const BufferLoad* n = e.as<BufferLoad>()) return n->buffer->name + "[" + list_of(n->indices, depth) + "]";
  if (const Not* n = e.as<Not>()) return grouped("not " + text_of(n->a, kNot, depth + 1), min_precedence > kNot);
  const BinaryOperands operands = binary_operands(e);
  const auto [symbol, precedence] = operands ? infix_of(e.kind(), operands.a->dtype()) : Infix{};
  if (symbol.empty()) return call_text(e, depth);
  // Comparisons do not chain.
  const int left = precedence == kCompare ? precedence + 1 : precedence;
  return grouped(
      text_of(*operands.a, left, depth + 1) + std::string(symbol) + text_of(*operands.b, precedence + 1, depth + 1),
      precedence < min_precedence);
}

/// "i:i + 4"
std::string interval_text(const Expr& begin, const Expr& end) {
  arith::Analyzer analyzer;
  return (begin.defined() ? brief(begin) : "?") + ":" + (end.defined() ? brief(analyzer.simplify(end)) : "?");
}

}  // namespace

std::string brief(const Expr& e) { return e.defined() ? text_of(e, kLowest, 0) : "None"; }

std::string brief(const Ref<BufferRegion>& region) {
  std::string text;
  for (const Ref<Range>& r : region->region) {
    if (!text.empty()) text += ", ";
    text += is_const_int(r->extent, 1) ? brief(r->min) : interval_text(r->min, r->min + r->extent);
  }
  return region->buffer->name + "[" + text + "]";
}

std::string brief(const Ref<Buffer>& buffer, const arith::Box& box) {
  std::string text;
  for (const arith::IntSet& set : box) {
    if (!text.empty()) text += ", ";
    text += set.is_point() ? brief(set.min) : interval_text(set.min, set.max.defined() ? set.max + 1 : Expr());
  }
  return buffer->name + "[" + text + "]";
}

}  // namespace tilewright::analysis
