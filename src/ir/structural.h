// Structural equality and hash, derived from the field lists.
//
// Bound variables and buffers match by the position of their definition, views that nothing declares on bound memory by
// their first use, free ones by identity (or, with map_free_vars, by first occurrence). Names of variables, buffers and
// blocks, identities of blocks and spans take no part; floats compare by their bits; attributes do not depend on the
// order they were set in.
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
/// The same in every process; version 2 of the scheme. Equal programs have equal hashes; free variables enter by the
/// order of their first occurrence.
Hash128 structural_hash(const NodeRef& node);
/// Equal with the very same variables and buffers: the check that needs no mapping, for expressions.
inline bool same_expr(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (!a.defined() || !b.defined() || a.kind() != b.kind() || a.dtype() != b.dtype()) return false;
  if (const IntImm* value = a.as<IntImm>()) return value->value == b.as<IntImm>()->value;
  return structural_equal(a, b);
}
inline bool same_exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, same_expr);
}
/// Constants of one value, whatever their types, or the same expression.
inline bool same_number(const Expr& a, const Expr& b) {
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  return x && y ? x->value == y->value : same_expr(a, b);
}

}  // namespace tilewright
