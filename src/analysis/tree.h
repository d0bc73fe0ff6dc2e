// A table of the statements of a scheduled function in pre-order, with parents, for navigation.
//
//   const Tree& tree = Tree::of(root);        // root: the function's root block; computed once per block
//   int at = tree.block(id);                  // a position, or kNone
//   for (int p = tree[at].parent; ...)
//
// Expressions are not entered. The entry of the root is the root Block itself, those of all other blocks their
// BlockRealize. A tree borrows its nodes: it lives as long as the root block.
#pragma once

#include <span>
#include <vector>

#include "analysis/memory_names.h"

namespace tilewright::analysis {

class Tree : public Memo::Fact {
 public:
  static constexpr int kNone = -1;
  struct Entry {
    const NodeBase* node;
    int parent;       ///< kNone for the root
    int end;          ///< one past the last descendant
    int scope;        ///< the block that encloses this statement (not itself); kNone for the root
    bool in_init;     ///< inside the init of a block: no handle reaches it
    bool is_block;    ///< the root, or a BlockRealize
    bool is_loop;     ///< a For
    bool binds_data;  ///< a BlockRealize that reads buffers for its axes or its condition (binding_reads.h)
  };

  static const Tree& of(const Ref<Block>& root);
  /// Returns the tree of a changed program. Unchanged statements of the other tree are not visited again.
  static const Tree& of(const Ref<Block>& root, const Tree& before);

  int size() const { return static_cast<int>(entries_.size()); }
  const Entry& operator[](int at) const { return entries_[at]; }
  /// Whether `outer` is `inner` or an ancestor of it.
  bool contains(int outer, int inner) const { return outer <= inner && inner < entries_[outer].end; }
  /// Positions of the direct children, in order.
  std::vector<int> children(int at) const;
  /// Returns the innermost statement that contains all positions.
  int common_ancestor(std::span<const int> positions) const;
  /// Returns the child of `ancestor` that contains `at`, a proper descendant.
  int child_towards(int ancestor, int at) const;

  /// Returns the loop with this variable, or the block with this identity; kNone if there is none.
  int loop(const NodeRef& loop_var) const;
  int block(uint64_t identity) const;
  /// Returns all blocks with handles, in pre-order, the root first.
  const std::vector<int>& blocks() const { return blocks_; }
  /// Returns all loops whose iterations do not run in the order of the program: parallel, vectorized, or bound to
  /// thread axes.
  const std::vector<int>& concurrent_loops() const { return concurrent_loops_; }
  /// Returns the enclosing loops of a statement up to its scope, outermost first.
  std::vector<int> loops_above(int at) const;
  /// Returns the outermost blocks strictly below `at`, in order.
  std::vector<int> child_blocks(int at) const;

  const MemoryNames& names() const { return names_; }
  const NodeBase* memory(const Ref<Buffer>& buffer) const { return names_.memory(buffer); }
  bool same_memory(const Ref<Buffer>& a, const Ref<Buffer>& b) const {
    return a->data == b->data || (!names_.empty() && memory(a) == memory(b));
  }
  /// Whether one of the regions is in the memory of the buffer.
  bool touches(const std::vector<Ref<BufferRegion>>& regions, const Ref<Buffer>& buffer) const;

  Stmt stmt(int at) const { return Stmt(entries_[at].node); }
  const For& for_at(int at) const { return static_cast<const NodeOf<For>*>(entries_[at].node)->data; }
  const Block& block_at(int at) const { return *block_ref_raw(at); }
  Ref<Block> block_ref(int at) const;
  /// Returns the BlockRealize; null for the root.
  const BlockRealize* realize_at(int at) const {
    const NodeBase* node = entries_[at].node;
    return node->kind == Kind::kBlockRealize ? &static_cast<const NodeOf<BlockRealize>*>(node)->data : nullptr;
  }

 private:
  friend class TreeBuilder;
  const Block* block_ref_raw(int at) const;
  std::vector<Entry> entries_;
  std::vector<int> blocks_;
  std::vector<int> concurrent_loops_;
  std::vector<std::pair<const NodeBase*, int>> loop_index_;  ///< sorted by variable
  std::vector<std::pair<uint64_t, int>> block_index_;        ///< sorted by identity
  MemoryNames names_;
};

}  // namespace tilewright::analysis
