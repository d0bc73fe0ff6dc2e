// Replacing variables, and making fresh copies of programs.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/stmt.h"

namespace tilewright {

using VarMap = std::unordered_map<NodeRef, Expr>;

/// Every use of a variable in the map is replaced; buffers whose shape, data or offset mention one are replaced by new
/// buffers at all their uses. Expressions are rebuilt as they are, without simplification.
Expr substitute(const Expr& root, const VarMap& map);
Stmt substitute(const Stmt& root, const VarMap& map);
Ref<PrimFunc> substitute(const Ref<PrimFunc>& root, const VarMap& map);
Ref<Block> substitute(const Ref<Block>& root, const VarMap& map);
Ref<BufferRegion> substitute(const Ref<BufferRegion>& root, const VarMap& map);

/// A copy whose variables, buffers and block identities are all its own: what is defined inside is renewed, what is
/// free stays.
Stmt renew_defs(const Stmt& root);
Ref<PrimFunc> renew_defs(const Ref<PrimFunc>& root);

/// Calls `use` for each occurrence of a variable that `root` does not itself define (order of occurrence, with
/// repetitions; the data pointers of free buffers included).
void for_each_free_var(const NodeRef& root, const std::function<void(const Ref<Var>&)>& use);
/// Whether the variable occurs anywhere in `root`.
bool uses_var(const NodeRef& root, const NodeRef& variable);
bool uses_any_var(const NodeRef& root, const std::function<bool(const Ref<Var>&)>& is_one);

/// Replaces buffers at all uses and definitions.
Stmt replace_buffers(const Stmt& root, const std::unordered_map<NodeRef, Ref<Buffer>>& map);

}  // namespace tilewright
