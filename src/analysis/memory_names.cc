#include "analysis/memory_names.h"

#include "ir/pointer_uses.h"

namespace tilewright::analysis {

MemoryNames::MemoryNames(const Tree& tree) {
  for (int at = 0; at < tree.size(); ++at) {
    if (tree[at].is_block) {
      for (const Ref<MatchBufferRegion>& match : tree.block_at(at).match_buffers) {
        sources_.emplace_back(match->buffer->data.get(), match->source->buffer->data.get());
      }
    } else if (tree[at].node->kind == Kind::kLetStmt) {
      const Stmt stmt = tree.stmt(at);
      const LetStmt& let = *stmt.as<LetStmt>();
      const Ref<Var> source = let.var.dtype().is_handle() ? pointer_in(let.value) : Ref<Var>();
      if (!source.defined()) continue;
      sources_.emplace_back(let.var.get(), source.get());
      has_pointers_ = true;
    }
  }
}

const MemoryNames& MemoryNames::of(const Tree& tree) {
  return tree.block_ref(0)->id.memo.get<MemoryNames>([&] { return MemoryNames(tree); });
}

const NodeBase* MemoryNames::memory(const NodeBase* data) const {
  for (size_t i = sources_.size(); i-- > 0;) {  // a name of a name stands behind its source
    if (sources_[i].first == data) data = sources_[i].second;
  }
  return data;
}

}  // namespace tilewright::analysis
