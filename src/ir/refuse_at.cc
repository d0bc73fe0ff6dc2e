#include "ir/refuse_at.h"

#include <utility>

namespace tilewright {

Diagnostic refuse_at(const NodeRef& node, std::string code, std::string message, std::string hint) {
  Diagnostic refusal = script_error(std::move(code), std::move(message), std::move(hint));
  if (!node.defined()) return refusal;
  refusal.span = node.span();
  refusal.nodes.push_back(keep(node));
  return refusal;
}

}  // namespace tilewright
