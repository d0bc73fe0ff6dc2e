#include "schedule/edit.h"

#include "analysis/scope.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Statements that it takes long to look through again.
constexpr size_t kLongBody = 32;

}  // namespace

bool TreeEdit::touched(int at) const {
  auto it = changes_.lower_bound(at);
  return it != changes_.end() && it->first < tree_[at].end;
}

Stmt TreeEdit::child(int at, const Stmt& old) {
  for (int c = at + 1; c < tree_[at].end; c = tree_[c].end) {
    if (tree_[c].node == old.get()) return touched(c) ? place(c) : old;
  }
  return old;
}

Stmt TreeEdit::place(int at) {
  auto* found = find_value(changes_, at);
  if (!found) return rebuild(at);
  const Change& change = *found;
  Stmt self;
  if (change.replacement.defined()) {
    self = change.replacement;
  } else if (!change.removed) {
    self = rebuild(at);
  }
  if (change.before.empty() && change.after.empty()) return self;
  std::vector<Stmt> all = change.before;
  if (self.defined()) all.push_back(self);
  append_range(all, change.after);
  return seq(std::move(all));
}

Stmt TreeEdit::rebuild_sequence(int at) {
  std::vector<Stmt> stmts;
  stmts.reserve(static_cast<const NodeOf<SeqStmt>*>(tree_[at].node)->data.seq.size());
  auto change = changes_.upper_bound(at);
  for (int c = at + 1; c < tree_[at].end; c = tree_[c].end) {
    if (change == changes_.end() || change->first >= tree_[c].end) {
      stmts.emplace_back(tree_[c].node);
      continue;
    }
    Stmt s = place(c);
    if (s.defined()) stmts.push_back(std::move(s));
    change = changes_.lower_bound(tree_[c].end);
  }
  return stmts.empty() ? Stmt() : seq(std::move(stmts));
}

Ref<Block> TreeEdit::rebuild_block(const Ref<Block>& block, int at) {
  Block copy = *block;
  if (copy.init.defined()) copy.init = child(at, copy.init);
  copy.body = child(at, copy.body);
  if (!copy.body.defined()) copy.body = nop();
  if (auto* found = find_value(changes_, at)) {
    for (const auto& change : found->on_block) change(copy);
  }
  return make(std::move(copy), block.span());
}

Stmt TreeEdit::rebuild(int at) {
  Stmt old = tree_.stmt(at);
  if (const BlockRealize* realize = tree_.realize_at(at)) {
    BlockRealize copy = *realize;
    copy.block = rebuild_block(copy.block, at);
    if (auto* known = find_value(changes_, at)) {
      for (const auto& change : known->on_realize) change(copy);
    }
    return make(std::move(copy), old.span());
  }
  if (old.is<SeqStmt>()) return rebuild_sequence(at);
  if (const For* loop = old.as<For>()) {
    Stmt body = child(at, loop->body);
    if (!body.defined()) return {};
    return with_body(old.borrow<For>(), std::move(body));
  }
  if (const IfThenElse* branch = old.as<IfThenElse>()) {
    IfThenElse copy = *branch;
    copy.then_case = child(at, copy.then_case);
    if (copy.else_case.defined()) copy.else_case = child(at, copy.else_case);
    if (!copy.then_case.defined()) {
      if (!copy.else_case.defined()) return {};
      copy.then_case = nop();
    }
    return make(std::move(copy), old.span());
  }
  // Every other kind of statement has one body, and is removed if its body is.
  bool emptied = false;
  struct Context {
    TreeEdit* self;
    int at;
    bool* emptied;
  } context{this, at, &emptied};
  NodeRef result = detail::map_children(
      old,
      [](void* opaque, const NodeRef& node, Role) -> NodeRef {
        auto& c = *static_cast<Context*>(opaque);
        if (node.sort() != Sort::kStmt) return node;
        Stmt after = c.self->child(c.at, static_cast<const Stmt&>(node));
        if (!after.defined()) *c.emptied = true;
        return after.defined() ? NodeRef(after) : node;
      },
      &context);
  return emptied ? Stmt() : Stmt(result);
}

Ref<Block> TreeEdit::finish() {
  Ref<Block> root = tree_.block_ref(0);
  if (changes_.empty()) return root;
  Ref<Block> result;
  with_stack_for(root.depth(), [&] { result = rebuild_block(root, 0); });
  Tree::of(result, tree_);  // the next step needs the tree
  // Derive the scope of a long body from the old one, since only a few statements have changed.
  if (const SeqStmt* body = result->body.as<SeqStmt>(); body && body->seq.size() >= kLongBody) {
    analysis::Scope::of(*result, *root);
  }
  return result;
}

}  // namespace tilewright::schedule
