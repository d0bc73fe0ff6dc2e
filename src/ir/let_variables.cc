#include "ir/let_variables.h"

#include "ir/traverse.h"

namespace tilewright {

std::unordered_set<NodeRef> let_variables(const NodeRef& root) {
  std::unordered_set<NodeRef> variables;
  visit(root, on<LetStmt, Let>([&](const auto& let) { variables.insert(let->var); }));
  return variables;
}

}  // namespace tilewright
