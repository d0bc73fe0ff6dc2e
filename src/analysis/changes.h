// Whether running a statement changes what an expression reads: it is then another number before than behind it.
//
//   for k in range(N[0]):      the body changes N[0], and the loop runs as often as N[0] said before
//     N[0] = 3
#pragma once

#include <unordered_map>

#include "analysis/tree.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// Whether the expression reads memory, at all.
bool reads_memory(const Expr& value);
/// Other names of memory in a function without blocks: pointers that lets name.
class PointerNames {
 public:
  explicit PointerNames(const Stmt& body);
  /// The data variable behind which the memory is known first.
  const NodeBase* memory(const NodeBase* data) const;

 private:
  std::unordered_map<const NodeBase*, const NodeBase*> sources_;
};

/// Whether `body` may change the value. A view that a block in `body` declares counts as the buffer that it views.
/// `names`: those of the function that both are from.
bool may_change(const PointerNames& names, const Stmt& body, const Expr& value);
/// The same for a statement of the tree, where blocks around it make views, too.
bool may_change(const Tree& tree, const Stmt& body, const Expr& value);

}  // namespace tilewright::analysis
