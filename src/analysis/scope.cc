#include "analysis/scope.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "analysis/binding_reads.h"
#include "analysis/unsettled.h"
#include "ir/atomic_operation.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

void unite(std::vector<int>& sorted, int item) {
  auto it = std::ranges::lower_bound(sorted, item);
  if (it == sorted.end() || *it != item) sorted.insert(it, item);
}

/// Returns the declared reads of the block, and the reads in the bindings of its axes.
std::vector<Ref<BufferRegion>> taken_by(const BlockRealize& realize) {
  std::vector<Ref<BufferRegion>> regions = realize.block->reads;
  for (Ref<BufferRegion>& read : binding_reads(realize)) regions.push_back(std::move(read));
  return regions;
}

/// Whether the expression surely reads no buffer.
bool is_plain(const Expr& e) { return e.is<IntImm>() || e.is<Var>(); }

/// Loops and sequences, of which a scope mostly consists, are walked without a visitor.
void find_blocks(const Stmt& stmt, std::vector<const BlockRealize*>& blocks, const NodeBase*& bare) {
  if (const SeqStmt* sequence = stmt.as<SeqStmt>()) {
    for (const Stmt& each : sequence->seq) find_blocks(each, blocks, bare);
    return;
  }
  if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
    blocks.push_back(realize);
    return;
  }
  const For* loop = stmt.as<For>();
  if (loop && is_plain(loop->min) && is_plain(loop->extent)) return find_blocks(loop->body, blocks, bare);
  if (!bare) bare = bare_statement_in(stmt);
  visit(stmt, [&](const Ref<BlockRealize>& realize, Visitor&) { blocks.push_back(&*realize); });
}

/// The statements behind one another that a body consists of.
std::span<const Stmt> parts_of(const Stmt& body) {
  const SeqStmt* sequence = body.as<SeqStmt>();
  return sequence ? std::span<const Stmt>(sequence->seq) : std::span<const Stmt>(&body, 1);
}

}  // namespace

namespace {

/// The first statement outside of blocks, without loop bounds that read buffers of which `is_written` is false.
template <class F>
const NodeBase* find_unsettled(const Stmt& stmt, F&& is_written) {
  const NodeBase* unsettled = nullptr;
  auto bare = [&](const NodeRef& node) {
    if (!unsettled) unsettled = node.get();
  };
  visit(
      stmt, [](const Ref<BlockRealize>&, Visitor&) {},
      [&](const Ref<For>& loop, Visitor& walk) {
        for (const Expr& end : {loop->min, loop->extent}) {
          visit(end, [&](const Ref<BufferLoad>& load) {
            if (is_written(load->buffer)) bare(load);
          });
        }
        walk(loop->body);
      },
      on<BufferStore, BufferLoad>([&](const auto& access, Visitor&) { bare(access); }),
      [&](const Ref<Evaluate>& evaluate, Visitor&) {
        if (!evaluate->value.is<IntImm>()) bare(evaluate);
      },
      on<Prefetch, While>([&](const auto& node, Visitor&) { bare(node); }));
  return unsettled;
}

}  // namespace

const NodeBase* bare_statement_in(const Stmt& stmt) {
  if (stmt.is<BlockRealize>()) return nullptr;
  const For* outer = stmt.as<For>();
  if (outer && stmt.depth() <= kInlineDepth && is_plain(outer->min) && is_plain(outer->extent)) {
    return bare_statement_in(outer->body);
  }
  if (const SeqStmt* sequence = stmt.as<SeqStmt>(); sequence && stmt.depth() <= kInlineDepth) {
    for (const Stmt& each : sequence->seq) {
      if (const NodeBase* found = bare_statement_in(each)) return found;
    }
    return nullptr;
  }
  return find_unsettled(stmt, [](const Ref<Buffer>&) { return true; });
}

const NodeBase* unsettled_statement(const Tree& tree, int block) {
  const Scope& scope = Scope::of(tree, block);
  if (!scope.bare_statement()) return nullptr;
  return find_unsettled(tree.block_at(block).body,
                        [&](const Ref<Buffer>& buffer) { return !scope.writers(buffer).empty(); });
}

const NodeBase* unsettled_statement_in(const Tree& tree, int at) {
  if (!bare_statement_in(tree.stmt(at))) return nullptr;
  const std::vector<int> blocks = tree.child_blocks(at);
  return find_unsettled(tree.stmt(at), [&](const Ref<Buffer>& buffer) {
    return any_of(blocks, [&](int block) { return tree.touches(tree.block_at(block).writes, buffer); });
  });
}

const Scope& Scope::known(const Block& block, const Block* before) {
  return block.id.memo.get<Scope>([&] {
    MemoryNames names;
    names.add_views(block);
    return made(block, before, std::move(names));
  });
}
const Scope& Scope::of(const Block& block) { return known(block, nullptr); }
const Scope& Scope::of(const Block& block, const Block& before) { return known(block, &before); }

/// The scopes of a tree whose blocks are in sight of names for one memory that stand around them. A fact of the root.
class Scope::InSight : public Memo::Fact {
 public:
  const Scope& of(const Tree& tree, int block) const {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Scope>& scope = scopes_[block];
    if (!scope) scope = std::make_unique<Scope>(made(tree.block_at(block), nullptr, tree.names()));
    return *scope;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::unordered_map<int, std::unique_ptr<Scope>> scopes_;
};

const Scope& Scope::of(const Tree& tree, int block) {
  bool has_names = tree.names().has_pointers();
  for (int at = tree[block].scope; at != Tree::kNone; at = tree[at].scope) {
    has_names |= !tree.block_at(at).match_buffers.empty();
  }
  if (!has_names) return of(tree.block_at(block));
  return tree.block_ref(0)->id.memo.get<InSight>([] { return InSight(); }).of(tree, block);
}

Scope Scope::made(const Block& block, const Block* before, MemoryNames names) {
  Scope scope;
  const std::span<const Stmt> stmts = parts_of(block.body), old = before ? parts_of(before->body) : stmts.first(0);
  const size_t expected = std::max<size_t>(stmts.size(), 8);
  scope.children_.reserve(expected);
  scope.used_.reserve(expected * 3);
  scope.users_.reserve(expected * 3);
  scope.ends_.reserve(stmts.size());
  scope.block_ = &block;
  scope.names_ = std::move(names);
  const Scope* known = old.empty() ? nullptr : &of(*before);
  if (known && (known->bare_ || !(known->names_ == scope.names_))) known = nullptr;
  with_stack_for(block.body.depth(), [&] {
    size_t next = 0;
    for (size_t i = 0; i < stmts.size();) {
      size_t first = known ? next : old.size();
      while (first < old.size() && old[first] != stmts[i]) ++first;
      if (first == old.size()) {
        scope.add(stmts[i++]);
        continue;
      }
      for (next = first; next < old.size() && i < stmts.size() && old[next] == stmts[i]; ++i) ++next;
      scope.add(*known, first, next);
    }
  });
  if (scope.bare_) scope.note_bare_uses(block.body);
  return scope;
}

void Scope::add(const Stmt& stmt) {
  size_t at = children_.size();
  find_blocks(stmt, children_, bare_);
  for (; at < children_.size(); ++at) {
    const BlockRealize& realize = *children_[at];
    const int child = static_cast<int>(at);
    for (const auto& write : realize.block->writes) note_use(write->buffer, child, true);
    for (const auto& read : realize.block->reads) note_use(read->buffer, child, false);
    for (const auto& read : binding_reads(realize)) note_use(read->buffer, child, false);
  }
  ends_.push_back({static_cast<uint32_t>(children_.size()), static_cast<uint32_t>(used_.size())});
}

void Scope::add(const Scope& other, size_t first, size_t last) {
  const Ends begin = first == 0 ? Ends{0, 0} : other.ends_[first - 1], end = other.ends_[last - 1];
  auto append = [](auto& to, const auto& from, size_t begin, size_t end) {
    const size_t size = to.size();
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
              from.begin() + static_cast<std::ptrdiff_t>(end));
    return std::span(to).subspan(size);
  };
  const int moved = static_cast<int>(children_.size()) - static_cast<int>(begin.children);
  const int moved_uses = static_cast<int>(used_.size()) - static_cast<int>(begin.uses);
  append(children_, other.children_, begin.children, end.children);
  append(used_, other.used_, begin.uses, end.uses);
  for (int& user : append(users_, other.users_, begin.uses, end.uses)) user += moved * 2;
  for (Ends& ends : append(ends_, other.ends_, first, last)) {
    ends.children += moved;
    ends.uses += moved_uses;
  }
}

void Scope::note_bare_uses(const Stmt& body) {
  visit(
      body, [](const Ref<BlockRealize>&, Visitor&) {},
      [&](const Ref<BufferStore>& store) { bare_writes_.push_back(memory(store->buffer)); },
      [&](const Ref<BufferLoad>& load) { bare_reads_.push_back(memory(load->buffer)); },
      [&](const Ref<Call>& call) {
        if (const auto step = AtomicOperation::of(call)) {
          bare_writes_.push_back(memory(step->buffer));
        } else {
          bare_unknown_ |= intrinsic_row(intrinsic_of(*call)).effect == Effect::kUpdateState;
        }
      },
      [&](const Ref<Evaluate>& evaluate, Visitor&) { bare_unknown_ |= !evaluate->value.is<IntImm>(); });
}

bool Scope::bare_statements_touch(const BlockRealize& child, bool also_reads) const {
  if (!bare_) return false;
  auto is_in = [&](const std::vector<const NodeBase*>& used, const Ref<BufferRegion>& region) {
    return bare_unknown_ || is_contained(used, memory(region->buffer));
  };
  const std::vector<Ref<BufferRegion>> taken = taken_by(child);
  const auto& writes = child.block->writes;
  auto is_taken_from = [&](const auto& region) {
    return is_in(bare_writes_, region) || (also_reads && is_in(bare_reads_, region));
  };
  return any_of(taken, is_taken_from) ||
         any_of(writes, [&](const auto& region) { return is_in(bare_writes_, region) || is_in(bare_reads_, region); });
}

bool Scope::touches(const std::vector<Ref<BufferRegion>>& regions, const NodeBase* data) const {
  return any_of(regions, [&](const Ref<BufferRegion>& region) { return memory(region->buffer) == data; });
}

int Scope::child(uint64_t identity) const {
  for (size_t i : indices_of(children_)) {
    if (children_[i]->block->id.value == identity) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> Scope::users(const NodeBase* data, bool write) const {
  std::vector<int> result;
  for (auto at = std::find(used_.begin(), used_.end(), data); at != used_.end();
       at = std::find(at + 1, used_.end(), data)) {
    const int user = users_[at - used_.begin()];
    if (user % 2 != (write ? 1 : 0)) continue;
    if (result.empty() || result.back() != user / 2) result.push_back(user / 2);
  }
  return result;
}

std::vector<Dependence> Scope::dependences() const {
  std::unordered_map<const NodeBase*, std::vector<int>> touching;
  for (size_t at : indices_of(used_)) {
    std::vector<int>& known = touching[used_[at]];
    const int child = users_[at] / 2;
    if (known.empty() || known.back() != child) known.push_back(child);
  }
  std::vector<Dependence> result;
  for (int dst = 0; dst < static_cast<int>(children_.size()); ++dst) {
    const auto reads = taken_by(*children_[dst]);
    const auto& writes = children_[dst]->block->writes;
    std::vector<int> earlier;
    for (const auto* regions : {&reads, &writes}) {
      for (const Ref<BufferRegion>& region : *regions) {
        for (int src : touching[memory(region->buffer)]) {
          if (src >= dst) break;
          unite(earlier, src);
        }
      }
    }
    for (int src : earlier) {
      for (const Ref<BufferRegion>& write : children_[src]->block->writes) {
        const NodeBase* data = memory(write->buffer);
        if (touches(reads, data)) result.push_back({src, dst, DependenceKind::kFlow, data});
        if (touches(writes, data)) result.push_back({src, dst, DependenceKind::kOutput, data});
      }
      for (const Ref<BufferRegion>& read : taken_by(*children_[src])) {
        const NodeBase* data = memory(read->buffer);
        if (touches(writes, data)) result.push_back({src, dst, DependenceKind::kAnti, data});
      }
    }
  }
  return result;
}

std::vector<int> Scope::consumers(int src) const {
  std::vector<int> result;
  for (const Ref<BufferRegion>& write : children_[src]->block->writes) {
    for (int dst : readers(write->buffer)) {
      if (dst > src) unite(result, dst);
    }
  }
  return result;
}

std::vector<int> Scope::producers(int dst) const {
  std::vector<int> result;
  for (const Ref<BufferRegion>& read : taken_by(*children_[dst])) {
    for (int src : writers(read->buffer)) {
      if (src < dst) unite(result, src);
    }
  }
  return result;
}

std::vector<int> Scope::writers(const Ref<Buffer>& buffer) const { return users(memory(buffer), true); }

std::vector<int> Scope::readers(const Ref<Buffer>& buffer) const { return users(memory(buffer), false); }

bool Scope::is_output(int child) const {
  const auto& writes = children_[child]->block->writes;
  return any_of(writes, [&](const Ref<BufferRegion>& write) {
    const NodeBase* data = memory(write->buffer);
    return none_of(block_->alloc_buffers, [&](const Ref<Buffer>& own) { return own->data.get() == data; });
  });
}

}  // namespace tilewright::analysis
