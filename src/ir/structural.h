// Structural equality and hash, derived from the field lists.
//
// Bound variables and buffers match by the position of their definition. Free ones match by identity or, with
// map_free_vars, by first occurrence. An undeclared buffer whose data variable is bound matches by its first use.
// Names, identities of blocks and spans are ignored. Floats are compared by their bits. The order in which attributes
// were set does not matter.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/stmt.h"
#include "support/hash.h"

namespace tilewright {

struct Mismatch {
  std::string path;  ///< "<root>.functions['main'].body.block.body.extent"
  NodeRef lhs, rhs;  ///< the innermost nodes that differ; null where one side has none
  std::string reason;
};

/// Nothing when equal.
std::optional<Mismatch> find_mismatch(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars = false);
inline bool structural_equal(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars = false) {
  return !find_mismatch(lhs, rhs, map_free_vars);
}
/// Returns a hash that all processes agree on (version 2). Equal programs have equal hashes; free variables enter by
/// the order of their first occurrence.
Hash128 structural_hash(const NodeRef& node);
/// Whether two expressions are equal if each variable and buffer matches itself only. Cheaper than structural_equal()
/// on common expressions, because no mapping of variables is needed.
inline bool same_expr(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (!a.defined() || !b.defined() || a.kind() != b.kind() || a.dtype() != b.dtype()) return false;
  if (const IntImm* value = a.as<IntImm>()) return value->value == b.as<IntImm>()->value;
  return structural_equal(a, b);
}
inline bool same_exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, same_expr);
}
/// Whether both are constants with the same value, of any types, or both are the same expression.
inline bool same_number(const Expr& a, const Expr& b) {
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  return x && y ? x->value == y->value : same_expr(a, b);
}

}  // namespace tilewright
