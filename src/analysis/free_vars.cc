#include "analysis/free_vars.h"

#include <algorithm>

#include "ir/substitute.h"

namespace tilewright::analysis {

const FreeVars& FreeVars::of(const Ref<Block>& block) {
  return block->id.memo.get<FreeVars>([&] {
    FreeVars result;
    for_each_free_var(block, [&](const Ref<Var>& v) { result.vars_.push_back(v.get()); });
    std::sort(result.vars_.begin(), result.vars_.end());
    result.vars_.erase(std::unique(result.vars_.begin(), result.vars_.end()), result.vars_.end());
    return result;
  });
}

bool FreeVars::contains(const NodeRef& variable) const {
  return std::binary_search(vars_.begin(), vars_.end(), variable.get());
}

}  // namespace tilewright::analysis
