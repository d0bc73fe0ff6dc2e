#include "analysis/tree.h"

#include <algorithm>

#include "ir/traverse.h"
#include "support/deep_stack.h"

namespace tilewright::analysis {

void Tree::add_block(const Block& block, int at, bool in_init) {
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
    views_.emplace_back(match->buffer->data.get(), match->source->buffer->data.get());
  }
  if (block.init.defined()) add(block.init, at, at, true);
  add(block.body, at, at, in_init);
}

void Tree::add(const NodeRef& stmt, int parent, int scope, bool in_init) {
  int at = size();
  Entry entry{};
  entry.node = stmt.get();
  entry.parent = parent;
  entry.scope = scope;
  entry.in_init = in_init;
  entry.is_loop = stmt.is<For>();
  entry.is_block = stmt.is<BlockRealize>();
  entries_.push_back(entry);
  if (const For* loop = stmt.as<For>()) {
    if (!in_init) loop_index_.emplace_back(loop->loop_var.get(), at);
    add(loop->body, at, scope, in_init);
  } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
    if (!in_init) {
      blocks_.push_back(at);
      block_index_.emplace_back(realize->block->id.value, at);
    }
    add_block(*realize->block, at, in_init);
  } else if (const SeqStmt* sequence = stmt.as<SeqStmt>()) {
    for (const Stmt& each : sequence->seq) add(each, at, scope, in_init);
  } else {
    for_each_child(stmt, [&](const NodeRef& child, Role) {
      if (child.sort() == Sort::kStmt) add(child, at, scope, in_init);
    });
  }
  entries_[at].end = size();
}

const Tree& Tree::of(const Ref<Block>& root) {
  return root->id.memo.get<Tree>([&] {
    Tree tree;
    with_stack_for(root.depth(), [&] {
      Entry entry{};
      entry.node = root.get();
      entry.parent = entry.scope = kNone;
      entry.is_block = true;
      tree.entries_.push_back(entry);
      tree.blocks_.push_back(0);
      tree.block_index_.emplace_back(root->id.value, 0);
      tree.add_block(*root, 0, false);
      tree.entries_[0].end = tree.size();
    });
    std::sort(tree.loop_index_.begin(), tree.loop_index_.end());
    std::sort(tree.block_index_.begin(), tree.block_index_.end());
    return tree;
  });
}

const Block* Tree::block_ref_raw(int at) const {
  if (const BlockRealize* realize = realize_at(at)) return &*realize->block;
  return &static_cast<const NodeOf<Block>*>(entries_[at].node)->data;
}

Ref<Block> Tree::block_ref(int at) const {
  if (const BlockRealize* realize = realize_at(at)) return realize->block;
  return Ref<Block>(entries_[at].node);
}

std::vector<int> Tree::children(int at) const {
  std::vector<int> result;
  for (int child = at + 1; child < entries_[at].end; child = entries_[child].end) result.push_back(child);
  return result;
}

int Tree::common_ancestor(std::span<const int> positions) const {
  auto [first, last] = std::minmax_element(positions.begin(), positions.end());
  int at = *first;
  while (!contains(at, *last)) at = entries_[at].parent;
  return at;
}

int Tree::child_towards(int ancestor, int at) const {
  while (entries_[at].parent != ancestor) at = entries_[at].parent;
  return at;
}

const NodeBase* Tree::memory(const Ref<Buffer>& buffer) const {
  const NodeBase* data = buffer->data.get();
  for (size_t i = views_.size(); i-- > 0;) {  // a view of a view stands behind its source
    if (views_[i].first == data) data = views_[i].second;
  }
  return data;
}

bool Tree::touches(const std::vector<Ref<BufferRegion>>& regions, const Ref<Buffer>& buffer) const {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Ref<BufferRegion>& region) { return same_memory(region->buffer, buffer); });
}

int Tree::loop(const NodeRef& loop_var) const {
  auto it = std::lower_bound(loop_index_.begin(), loop_index_.end(), std::pair(loop_var.get(), 0));
  return it != loop_index_.end() && it->first == loop_var.get() ? it->second : kNone;
}

int Tree::block(uint64_t identity) const {
  auto it = std::lower_bound(block_index_.begin(), block_index_.end(), std::pair(identity, 0));
  return it != block_index_.end() && it->first == identity ? it->second : kNone;
}

std::vector<int> Tree::loops_above(int at) const {
  std::vector<int> loops;
  for (int p = entries_[at].parent; p != kNone && !entries_[p].is_block; p = entries_[p].parent) {
    if (entries_[p].is_loop) loops.push_back(p);
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

std::vector<int> Tree::child_blocks(int at) const {
  std::vector<int> result;
  for (int p = at + 1; p < entries_[at].end;) {
    if (entries_[p].is_block && !entries_[p].in_init) {
      result.push_back(p);
      p = entries_[p].end;
    } else {
      ++p;
    }
  }
  return result;
}

}  // namespace tilewright::analysis
