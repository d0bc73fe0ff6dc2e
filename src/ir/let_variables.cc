#include "ir/let_variables.h"

#include "ir/traverse.h"

namespace tilewright {

std::unordered_set<NodeRef> let_variables(const NodeRef& root) {
  std::unordered_set<NodeRef> variables;
  visit(
      root, [&](const Ref<LetStmt>& let) { variables.insert(let->var); },
      [&](const Ref<Let>& let) { variables.insert(let->var); });
  return variables;
}

}  // namespace tilewright
