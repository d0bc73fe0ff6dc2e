#include "analysis/memory_names.h"

#include "ir/pointer_uses.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {

MemoryNames::MemoryNames(const Stmt& body) {
  visit(body, [&](const Ref<Block>& block) { add_views(*block); }, [&](const Ref<LetStmt>& let) { add_pointer(*let); });
}

MemoryNames MemoryNames::of_views(const Stmt& body) {
  MemoryNames names;
  visit(body, [&](const Ref<Block>& block) { names.add_views(*block); });
  return names;
}

void MemoryNames::add_views(const Block& block) {
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
    sources_.emplace_back(match->buffer->data.get(), match->source->buffer->data.get());
  }
}

void MemoryNames::add_pointer(const LetStmt& let) {
  const Ref<Var> source = let.var.dtype().is_handle() ? pointer_in(let.value) : Ref<Var>();
  if (!source.defined()) return;
  sources_.emplace_back(let.var.get(), source.get());
  has_pointers_ = true;
}

const NodeBase* MemoryNames::memory(const NodeBase* data) const {
  for (const auto& [name, source] : reversed(sources_)) {  // a name of a name stands behind its source
    if (name == data) data = source;
  }
  return data;
}

}  // namespace tilewright::analysis
