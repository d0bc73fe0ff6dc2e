// Collects changes to a function's statements, and applies them in one walk. Unchanged statements keep their identity.
//
//   TreeEdit edit(tree);
//   edit.replace(loop, outer_nest);
//   edit.remove(block);                                     // and whatever is left empty around it
//   edit.insert(parent_body, 0, copy_stage);                // before the first child of a sequence
//   edit.change_block(scope, [&](Block& b) { b.alloc_buffers.push_back(cache); });
//   Ref<Block> root = edit.finish();
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "analysis/tree.h"

namespace tilewright::schedule {

using analysis::Tree;

class TreeEdit {
 public:
  explicit TreeEdit(const Tree& tree) : tree_(tree) {}

  /// Replaces or removes a statement: at most one of both per statement, and none below a replaced one.
  void replace(int at, Stmt with) { changes_[at].replacement = std::move(with); }
  void remove(int at) { changes_[at].removed = true; }
  /// Puts a statement before or after another one, making a sequence of them where there is none.
  void insert_before(int at, Stmt what) { changes_[at].before.push_back(std::move(what)); }
  void insert_after(int at, Stmt what) { changes_[at].after.push_back(std::move(what)); }
  /// Changes fields other than the body; runs after everything below the block was changed.
  void change_block(int at, std::function<void(Block&)> change) { changes_[at].on_block.push_back(std::move(change)); }
  /// Changes fields other than the body of a BlockRealize that is not the root.
  void change_realize(int at, std::function<void(BlockRealize&)> change) {
    changes_[at].on_realize.push_back(std::move(change));
  }

  /// The new root block. A block that is left without any statement gets an empty one.
  Ref<Block> finish();

 private:
  struct Change {
    Stmt replacement;
    bool removed = false;
    std::vector<Stmt> before, after;
    std::vector<std::function<void(Block&)>> on_block;
    std::vector<std::function<void(BlockRealize&)>> on_realize;
  };
  bool touched(int at) const;
  /// Returns the statement that replaces the one at `at`: null if it was removed.
  Stmt place(int at);
  Stmt rebuild(int at);
  Ref<Block> rebuild_block(const Ref<Block>& block, int at);
  Stmt rebuild_sequence(int at);
  /// `child` is a direct child of `at`, as found in the old tree.
  Stmt child(int at, const Stmt& old);

  const Tree& tree_;
  std::map<int, Change> changes_;
};

}  // namespace tilewright::schedule
