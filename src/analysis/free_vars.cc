#include "analysis/free_vars.h"

#include <algorithm>

#include "analysis/plain_store.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::analysis {

namespace {

/// Fast path for plain blocks: collects the variables that the block does not define. Returns false if the general walk
/// is needed.
bool collect_plainly(const PlainBlock& plain, std::vector<const NodeBase*>& vars) {
  const Block& block = *plain.block;
  if (!block.annotations.empty()) return false;
  PlainStore all = plain.body;
  if (plain.init) append_range(all.vars, plain.init->vars);
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const Ref<BufferRegion>& region : *regions) {
      if (!PlainStore::is_plain(*region->buffer)) return false;
      all.vars.push_back(region->buffer->data.get());
      for (const Ref<Range>& range : region->region) {
        if (!all.collect(range->min) || !all.collect(range->extent)) return false;
      }
    }
  }
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (!axis->dom.defined() || !all.collect(axis->dom->min) || !all.collect(axis->dom->extent)) return false;
  }
  vars = std::move(all.vars);
  std::erase_if(vars, [&](const NodeBase* v) {
    return any_of(block.iter_vars, [&](const Ref<IterVar>& axis) { return axis->var.get() == v; });
  });
  return true;
}

}  // namespace

const FreeVars& FreeVars::of(const Ref<Block>& block) {
  return block->id.memo.get<FreeVars>([&] {
    FreeVars result;
    const auto& plain = PlainBlock::of(*block);
    if (!plain || !collect_plainly(*plain, result.vars_)) {
      result.vars_.clear();
      for_each_free_var(block, [&](const Ref<Var>& v) { result.vars_.push_back(v.get()); });
    }
    std::ranges::sort(result.vars_);
    result.vars_.erase(std::unique(result.vars_.begin(), result.vars_.end()), result.vars_.end());
    return result;
  });
}

bool FreeVars::contains(const NodeRef& variable) const { return std::ranges::binary_search(vars_, variable.get()); }

}  // namespace tilewright::analysis
