// Replacing variables, and making fresh copies of programs.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/stmt.h"

namespace tilewright {

using VarMap = std::unordered_map<NodeRef, Expr>;

/// Replaces every use of the variables in the map. Buffers whose shape, data or offset uses one become new buffers, at
/// all of their uses. Nothing is simplified, except that sizes of axes and buffers of a function over axes are folded.
Expr substitute(const Expr& root, const VarMap& map);
Stmt substitute(const Stmt& root, const VarMap& map);
Ref<PrimFunc> substitute(const Ref<PrimFunc>& root, const VarMap& map);
Ref<Block> substitute(const Ref<Block>& root, const VarMap& map);
Ref<BufferRegion> substitute(const Ref<BufferRegion>& root, const VarMap& map);

/// Returns a copy in which all variables, buffers and block identities that the program defines are new ones. Free
/// variables and buffers stay.
Stmt renew_defs(const Stmt& root);
Ref<PrimFunc> renew_defs(const Ref<PrimFunc>& root);

/// Calls `use` for each occurrence of a variable that `root` does not itself define (order of occurrence, with
/// repetitions; the data pointers of free buffers included).
void for_each_free_var(const NodeRef& root, const std::function<void(const Ref<Var>&)>& use);
/// Whether the variable occurs anywhere in `root`.
bool uses_var(const NodeRef& root, const NodeRef& variable);
bool uses_any_var(const NodeRef& root, const std::function<bool(const Ref<Var>&)>& is_one);
/// uses_any_var for a set or a map of variables.
template <class Vars>
bool uses_any_of(const NodeRef& root, const Vars& vars) {
  return uses_any_var(root, [&](const Ref<Var>& v) { return vars.contains(v); });
}

/// Replaces buffers at all uses and definitions.
Stmt replace_buffers(const Stmt& root, const std::unordered_map<NodeRef, Ref<Buffer>>& map);

}  // namespace tilewright
