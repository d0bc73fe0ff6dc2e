// Finds the free variables of a block: those that it uses and does not define. If all of them are parameters of the
// function, the block is isolated: its instances depend on its own axes only.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

class FreeVars : public Memo::Fact {
 public:
  static const FreeVars& of(const Ref<Block>& block);
  bool contains(const NodeRef& variable) const;

 private:
  std::vector<const NodeBase*> vars_;  ///< sorted
};

}  // namespace tilewright::analysis
