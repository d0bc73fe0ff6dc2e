#include "analysis/tree.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "analysis/binding_reads.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/inline_vector.h"
#include "support/ranges.h"

namespace tilewright::analysis {

/// Builds a tree, of statements that another tree holds by copying its entries.
class TreeBuilder {
 public:
  using Entry = Tree::Entry;
  static constexpr int kNone = Tree::kNone;

  TreeBuilder(const Tree* before, Tree& tree) : before_(before), tree_(tree) {
    if (!before) return;
    moved_.assign(before->size(), kNone);
    tree_.entries_.reserve(before->size() + 8);
    tree_.blocks_.reserve(before->blocks_.size() + 4);
    if (!before->concurrent_loops_.empty()) tree_.concurrent_loops_.reserve(before->concurrent_loops_.size() + 2);
  }

  void build(const Ref<Block>& root) {
    Entry entry{};
    entry.node = root.get();
    entry.parent = entry.scope = kNone;
    entry.is_block = true;
    tree_.entries_.push_back(entry);
    note(0, kNone);
    add_block(*root, 0, false, before_ ? 0 : kNone);
    tree_.entries_[0].end = tree_.size();
    tree_.loop_index_ = merged(&Tree::loop_index_, new_loops_);
    tree_.block_index_ = merged(&Tree::block_index_, new_blocks_);
  }

 private:
  const Entry& old(int at) const { return before_->entries_[at]; }

  /// Enters what has a name of its own. `before`: of the old tree a statement of that kind, which may bind the same.
  void note(int at, int before) {
    const Entry& entry = tree_.entries_[at];
    if (entry.is_loop) {
      const For& loop = tree_.for_at(at);
      if (!entry.in_init) new_loops_.push_back({loop.loop_var.get(), at});
      if (loop.kind != ForKind::kSerial && loop.kind != ForKind::kUnrolled) tree_.concurrent_loops_.push_back(at);
    } else if (entry.is_block) {
      tree_.entries_[at].binds_data = at > 0 && binds_data(at, before);
      if (!entry.in_init) {
        tree_.blocks_.push_back(at);
        new_blocks_.push_back({tree_.block_at(at).id.value, at});
      }
      tree_.names_.add_views(tree_.block_at(at));
    } else if (entry.node->kind == Kind::kLetStmt) {
      tree_.names_.add_pointer(let_at(at));
    }
  }
  const LetStmt& let_at(int at) const { return static_cast<const NodeOf<LetStmt>*>(tree_.entries_[at].node)->data; }
  bool binds_data(int at, int before) const {
    const BlockRealize& realize = *tree_.realize_at(at);
    if (before != kNone) {
      const BlockRealize& was = *before_->realize_at(before);
      const bool same = was.predicate == realize.predicate && was.iter_values == realize.iter_values;
      if (same && was.block->iter_vars == realize.block->iter_vars) return old(before).binds_data;
    }
    return analysis::binds_data(realize);
  }

  /// Entries of the old tree in [first, end), some statements behind one another with all below them.
  void copy(int first, int end, int parent, int scope) {
    const int shift = tree_.size() - first;
    const auto from = before_->entries_.begin();
    tree_.entries_.insert(tree_.entries_.end(), from + first, from + end);
    const std::span<Entry> copies = std::span(tree_.entries_).subspan(first + shift);
    for (Entry& entry : copies) {
      entry.parent = entry.parent >= first ? entry.parent + shift : parent;
      entry.scope = entry.scope >= first ? entry.scope + shift : scope;
      entry.end += shift;
    }
    std::iota(moved_.begin() + first, moved_.begin() + end, first + shift);
    auto copy_positions = [&](const std::vector<int>& from, std::vector<int>& to) {
      for (auto it = std::ranges::lower_bound(from, first); it != from.end() && *it < end; ++it) {
        to.push_back(*it + shift);
      }
    };
    copy_positions(before_->blocks_, tree_.blocks_);
    copy_positions(before_->concurrent_loops_, tree_.concurrent_loops_);
    for (int at = first; at < end && !before_->names_.empty(); ++at) {
      if (old(at).is_block) tree_.names_.add_views(tree_.block_at(at + shift));
      if (old(at).node->kind == Kind::kLetStmt) tree_.names_.add_pointer(let_at(at + shift));
    }
  }

  /// Returns the position in the old tree of the child of `at`: the body of a loop, or the body or the init of a block.
  int old_child(int at, bool init) const {
    if (at == kNone || at + 1 == old(at).end) return kNone;
    int first = at + 1, second = old(first).end;
    return second < old(at).end && !init ? second : first;
  }

  void add_block(const Block& block, int at, bool in_init, int before) {
    if (block.init.defined()) add(block.init, at, at, true, old_child(before, true));
    add(block.body, at, at, in_init, old_child(before, false));
  }

  /// Reuse nodes of the previous tree: an unchanged statement is found at its old location or behind it.
  void add_sequence(const std::vector<Stmt>& stmts, int at, int scope, bool in_init, int before) {
    const bool known = before != kNone && old(before).in_init == in_init;
    const int end = known ? old(before).end : 0;
    int next = known ? before + 1 : 0;
    for (size_t i = 0; i < stmts.size();) {
      int first = next;
      while (first < end && old(first).node != stmts[i].get()) first = old(first).end;
      if (first >= end) {
        add(stmts[i++], at, scope, in_init, next < end ? next : kNone);
        continue;
      }
      for (next = first; next < end && i < stmts.size() && old(next).node == stmts[i].get(); ++i) next = old(next).end;
      copy(first, next, at, scope);
    }
  }

  /// `before`: of the old tree what may be the same, or have the same below.
  void add(const NodeRef& stmt, int parent, int scope, bool in_init, int before) {
    if (before != kNone) {
      const Entry& was = old(before);
      if (was.node == stmt.get() && was.in_init == in_init) return copy(before, was.end, parent, scope);
      if (was.node->kind != stmt.kind()) before = kNone;
    }
    int at = tree_.size();
    Entry entry{};
    entry.node = stmt.get();
    entry.parent = parent;
    entry.scope = scope;
    entry.in_init = in_init;
    entry.is_loop = stmt.is<For>();
    entry.is_block = stmt.is<BlockRealize>();
    tree_.entries_.push_back(entry);
    note(at, before);
    if (const For* loop = stmt.as<For>()) {
      add(loop->body, at, scope, in_init, old_child(before, false));
    } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
      add_block(*realize->block, at, in_init, before);
    } else if (const SeqStmt* sequence = stmt.as<SeqStmt>()) {
      add_sequence(sequence->seq, at, scope, in_init, before);
    } else if (!stmt.is<BufferStore>()) {  // which has no statements below
      for_each_child(stmt, [&](const NodeRef& child, Role) {
        if (child.sort() == Sort::kStmt) add(child, at, scope, in_init, kNone);
      });
    }
    tree_.entries_[at].end = tree_.size();
  }

  /// The index of the old tree at the new positions, and what is new.
  template <class Index, class Added>
  Index merged(Index Tree::* which, Added& added) const {
    std::ranges::sort(added);
    if (!before_) return Index(added.begin(), added.end());
    Index result((before_->*which).size() + added.size());
    auto to = result.begin();
    auto next = added.begin();
    for (const auto& [key, at] : before_->*which) {
      if (moved_[at] == kNone) continue;
      for (; next != added.end() && std::less<>()(next->first, key); ++next) *to++ = *next;
      *to++ = {key, moved_[at]};
    }
    result.erase(std::copy(next, added.end(), to), result.end());
    return result;
  }

  const Tree* before_;
  Tree& tree_;
  std::vector<int> moved_;  ///< new positions of the entries of the old tree
  InlineVector<std::pair<const NodeBase*, int>, 16> new_loops_;
  InlineVector<std::pair<uint64_t, int>, 8> new_blocks_;
};

namespace {

Tree built(const Ref<Block>& root, const Tree* before) {
  Tree tree;
  with_stack_for(root.depth(), [&] { TreeBuilder(before, tree).build(root); });
  return tree;
}

const Tree& known_tree(const Ref<Block>& root, const Tree* before) {
  return root->id.memo.get<Tree>([&] { return built(root, before); });
}

}  // namespace

const Tree& Tree::of(const Ref<Block>& root) { return known_tree(root, nullptr); }
const Tree& Tree::of(const Ref<Block>& root, const Tree& before) { return known_tree(root, &before); }

const Block* Tree::block_ref_raw(int at) const {
  if (const BlockRealize* realize = realize_at(at)) return &*realize->block;
  return &static_cast<const NodeOf<Block>*>(entries_[at].node)->data;
}

Ref<Block> Tree::block_ref(int at) const {
  if (const BlockRealize* realize = realize_at(at)) return realize->block;
  return Ref<Block>(entries_[at].node);
}

namespace {
/// Capacity for the loops around most blocks.
constexpr size_t kUsualLoops = 16;
}  // namespace

std::vector<int> Tree::children(int at) const {
  std::vector<int> result;
  for (int child = at + 1; child < entries_[at].end; child = entries_[child].end) result.push_back(child);
  return result;
}

int Tree::common_ancestor(std::span<const int> positions) const {
  auto [first, last] = std::ranges::minmax_element(positions);
  int at = *first;
  while (!contains(at, *last)) at = entries_[at].parent;
  return at;
}

int Tree::child_towards(int ancestor, int at) const {
  while (entries_[at].parent != ancestor) at = entries_[at].parent;
  return at;
}

bool Tree::touches(const std::vector<Ref<BufferRegion>>& regions, const Ref<Buffer>& buffer) const {
  return any_of(regions, [&](const Ref<BufferRegion>& region) { return same_memory(region->buffer, buffer); });
}

int Tree::loop(const NodeRef& loop_var) const {
  auto it = std::ranges::lower_bound(loop_index_, std::pair(loop_var.get(), 0));
  return it != loop_index_.end() && it->first == loop_var.get() ? it->second : kNone;
}

int Tree::block(uint64_t identity) const {
  auto it = std::ranges::lower_bound(block_index_, std::pair(identity, 0));
  return it != block_index_.end() && it->first == identity ? it->second : kNone;
}

std::vector<int> Tree::loops_above(int at) const {
  std::vector<int> loops;
  loops.reserve(kUsualLoops);
  for (int p = entries_[at].parent; p != kNone && !entries_[p].is_block; p = entries_[p].parent) {
    if (entries_[p].is_loop) loops.push_back(p);
  }
  std::ranges::reverse(loops);
  return loops;
}

std::vector<int> Tree::child_blocks(int at) const {
  std::vector<int> result;
  result.reserve(8);
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
