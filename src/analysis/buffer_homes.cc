#include "analysis/buffer_homes.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

/// Loops and blocks around something, outermost first.
using Path = std::vector<NodeRef>;

/// All accesses of one innermost block that follow one another.
struct Access {
  const Block* block;
  Path path;
  bool reads = false;
};

struct Accesses {
  Path common;
  std::vector<Access> list;  ///< in order of execution
};

bool touches(const std::vector<Ref<BufferRegion>>& regions, const NodeRef& buffer) {
  return std::any_of(regions.begin(), regions.end(), [&](const auto& region) { return region->buffer == buffer; });
}

bool owns(const NodeRef& node, const NodeRef& buffer) {
  const Block* block = node.as<Block>();
  return block && std::any_of(block->alloc_buffers.begin(), block->alloc_buffers.end(),
                              [&](const Def<Buffer>& own) { return own == buffer; });
}

bool is_shared(const For& loop) { return loop.kind == ForKind::kParallel || loop.kind == ForKind::kThreadBinding; }

/// Each instance stores all that the block declares: nothing inside of it depends on a condition.
bool is_unconditional(const Block& block) {
  bool plain = true;
  visit(
      block.body, [&](const Ref<IfThenElse>&) { plain = false; }, [&](const Ref<While>&) { plain = false; },
      [&](const Ref<BlockRealize>&) { plain = false; },
      [&](const Ref<BufferStore>& store) { plain &= !store->predicate.defined(); });
  return plain;
}

class HomeFinder {
 public:
  explicit HomeFinder(const Stmt& body) {
    visit(body, [&](const Ref<Block>& block) {
      for (const Def<Buffer>& buffer : block->alloc_buffers) {
        by_data_[buffer->data] = buffer;
        accesses_[buffer];
        declared_.push_back(buffer);
      }
    });
    if (declared_.empty()) return;
    collect(body);
    if (const BlockRealize* root = body.as<BlockRealize>()) tree_ = &Tree::of(root->block);
    for (int at = 1; tree_ && at < tree_->size(); ++at) {
      if (!(*tree_)[at].is_block || (*tree_)[at].in_init) continue;
      auto [it, fresh] = positions_.emplace(&tree_->block_at(at), at);
      if (!fresh) it->second = Tree::kNone;  // one node in two places
    }
  }

  std::vector<BufferHome> find() const {
    std::vector<BufferHome> homes;
    for (const Ref<Buffer>& buffer : declared_) {
      const Accesses& access = accesses_.at(buffer);
      if (!access.list.empty()) homes.push_back(place(buffer, access));
    }
    return homes;
  }

 private:
  void note(const NodeRef& buffer, bool reads) {
    auto it = accesses_.find(buffer);
    if (it == accesses_.end()) return;
    Accesses& access = it->second;
    // Loops inside of the innermost block belong to that block.
    Path path(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(innermost_block_));
    const Block* block = path.empty() ? nullptr : path.back().as<Block>();
    if (access.list.empty()) {
      access.common = path;
    } else {
      size_t same = 0;
      while (same < std::min(path.size(), access.common.size()) && path[same] == access.common[same]) ++same;
      access.common.resize(same);
    }
    if (access.list.empty() || access.list.back().block != block) access.list.push_back({block, std::move(path)});
    access.list.back().reads |= reads;
  }

  void collect(const Stmt& body) {
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          v(loop->min);
          v(loop->extent);
          path_.push_back(loop);
          v(loop->body);
          path_.pop_back();
        },
        [&](const Ref<While>& loop, Visitor& v) {
          path_.push_back(loop);
          v.descend(loop);
          path_.pop_back();
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          v.descend(realize);
          note_carried(*realize);
        },
        [&](const Ref<Block>& block, Visitor& v) {
          path_.push_back(block);
          size_t outer = std::exchange(innermost_block_, path_.size());
          for (const Ref<MatchBufferRegion>& match : block->match_buffers) note(match->source->buffer, true);
          v(block->init);
          v(block->body);
          innermost_block_ = outer;
          path_.pop_back();
        },
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          note(load->buffer, true);
          for (const Expr& index : load->indices) v(index);
          v(load->predicate);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          v(store->value);
          for (const Expr& index : store->indices) v(index);
          v(store->predicate);
          note(store->buffer, false);
        },
        [&](const Ref<Var>& v) {
          auto it = by_data_.find(v);
          if (it != by_data_.end()) note(it->second, true);
        });
  }

  /// Loops over which the block's reductions and scans run.
  void note_carried(const BlockRealize& realize) {
    std::vector<NodeRef> variables;
    for (size_t i = 0; i < realize.iter_values.size(); ++i) {
      if (realize.block->iter_vars[i]->iter_type == IterType::kDataPar) continue;
      visit(realize.iter_values[i], [&](const Ref<Var>& v) { variables.push_back(v); });
    }
    if (!variables.empty()) carried_[&*realize.block] = std::move(variables);
  }

  /// The loop drives a reduction of a block that writes the buffer.
  bool carries(const Access& access, const NodeRef& buffer, const NodeRef& loop_var) const {
    return std::any_of(access.path.begin(), access.path.end(), [&](const NodeRef& node) {
      const Block* block = node.as<Block>();
      auto it = carried_.find(block);
      if (it == carried_.end() || !touches(block->writes, buffer)) return false;
      return std::find(it->second.begin(), it->second.end(), loop_var) != it->second.end();
    });
  }

  int position(const Block* block) const {
    auto it = positions_.find(block);
    return it == positions_.end() ? Tree::kNone : it->second;
  }

  bool surely_writes(int at) const {
    Ref<Block> block = tree_->block_ref(at);
    return BlockFacts::of(block).role != BlockRole::kOther && is_unconditional(*block);
  }

  /// What the block reads of its own results, its init has set before.
  bool starts_its_reduction(int at) const {
    return BlockFacts::of(tree_->block_ref(at)).role == BlockRole::kReduction &&
           is_unconditional(tree_->block_at(at)) && !limits_reduction(*tree_->realize_at(at));
  }

  /// Whatever is read has been written before, in the same iteration of each loop around both.
  bool is_fresh(const Ref<Buffer>& buffer, const Accesses& access) const {
    std::vector<int> writers;
    for (const Access& one : access.list) {
      int at = position(one.block);
      if (!tree_ || at == Tree::kNone) return false;
      const Block& block = tree_->block_at(at);
      bool writes = touches(block.writes, buffer);
      if (one.reads) {
        bool known = touches(block.reads, buffer)
                         ? std::any_of(writers.begin(), writers.end(),
                                       [&](int writer) { return !why_not_covered(*tree_, writer, at, buffer); })
                         : writes && starts_its_reduction(at);
        if (!known) return false;
      }
      if (writes && surely_writes(at)) writers.push_back(at);
    }
    return true;
  }

  /// The first block that uses the buffer sets elements, and reads none.
  static bool starts_with_write(const NodeRef& buffer, const Accesses& access) {
    const Block* first = access.list.front().block;
    if (!first || !touches(first->writes, buffer)) return false;
    return first->init.defined() || !touches(first->reads, buffer);
  }

  BufferHome place(const Ref<Buffer>& buffer, const Accesses& access) const {
    Path path = access.common;
    size_t owner = 0;  // whose instances each have a buffer of their own: nothing outside matters
    while (owner < path.size() && !owns(path[owner], buffer)) ++owner;
    bool writes_first = starts_with_write(buffer, access);
    std::optional<bool> fresh;  // costs something to find out
    auto carries_values = [&](const NodeRef& node) {
      const For* loop = node.as<For>();
      if (!loop && !node.is<While>()) return false;
      if (!writes_first || (loop && loop->kind == ForKind::kVectorized)) return true;
      for (const Access& one : access.list) {
        if (loop && carries(one, buffer, loop->loop_var)) return true;
      }
      if (loop && ((is_shared(*loop) && !fresh) || is_const_int(loop->extent, 1))) return false;
      if (!fresh) fresh = is_fresh(buffer, access);
      return !*fresh;
    };
    for (size_t depth = owner; depth < path.size(); ++depth) {
      if (!carries_values(path[depth])) continue;
      path.resize(depth);
      break;
    }
    // The innermost block of an access holds its own loops; it is no place to allocate in, unless it is the owner.
    while (path.size() > 1 && !path.back().is<For>() && !owns(path.back(), buffer)) path.pop_back();
    BufferHome result{buffer, path.empty() ? NodeRef() : path.back(), {}};
    for (size_t depth = owner; depth < path.size(); ++depth) {
      const For* loop = path[depth].as<For>();
      if (loop && is_shared(*loop)) result.shared = path[depth].cast<For>();
    }
    return result;
  }

  Path path_;
  size_t innermost_block_ = 0;
  std::unordered_map<NodeRef, NodeRef> by_data_;
  std::unordered_map<NodeRef, Accesses> accesses_;
  std::unordered_map<const Block*, std::vector<NodeRef>> carried_;
  std::unordered_map<const Block*, int> positions_;
  std::vector<Ref<Buffer>> declared_;
  const Tree* tree_ = nullptr;
};

using Homes = std::unordered_map<NodeRef, std::vector<Def<Buffer>>>;

/// `homes`: what each loop and block shall allocate, and nothing else.
Stmt move_allocations(const Stmt& body, Homes homes) {
  return rewrite(
      body,
      [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
        Block copy = *r.descend(block);
        copy.alloc_buffers = homes[block];
        return make<Block>(std::move(copy), block.span());
      },
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        Ref<For> inner = r.descend(loop);
        std::vector<Def<Buffer>> own = homes[loop];
        if (own.empty()) return inner;
        Block host;
        host.alloc_buffers = std::move(own);
        host.body = inner->body;
        For copy = *inner;
        copy.body = make<BlockRealize>({{}, bool_imm(true), make<Block>(std::move(host))});
        return make<For>(std::move(copy), loop.span());
      });
}

Ref<PrimFunc> with_body(const Ref<PrimFunc>& func, Stmt body) {
  PrimFunc copy = *func;
  copy.body = std::move(body);
  return make<PrimFunc>(std::move(copy), func.span());
}

}  // namespace

std::vector<BufferHome> buffer_homes(const Ref<PrimFunc>& func) { return HomeFinder(func->body).find(); }

Ref<PrimFunc> with_buffers_at_home(const Ref<PrimFunc>& func) {
  Homes homes;
  for (BufferHome& home : buffer_homes(func)) homes[home.home].push_back(home.buffer);
  bool allocates = false;
  visit(func->body, [&](const Ref<Block>& block) { allocates |= !block->alloc_buffers.empty(); });
  return allocates ? with_body(func, move_allocations(func->body, std::move(homes))) : func;
}

Ref<Module> with_private_buffers(const Ref<Module>& module) {
  Module result = *module;
  bool changed = false;
  for (auto& [name, function] : result.functions) {
    Ref<PrimFunc> func = function.cast<PrimFunc>();
    if (!func.defined()) continue;
    std::unordered_map<NodeRef, Ref<For>> moved;
    for (BufferHome& home : buffer_homes(func)) {
      if (home.shared.defined()) moved[home.buffer] = home.shared;
    }
    if (moved.empty()) continue;
    Homes homes;
    visit(func->body, [&](const Ref<Block>& block) {
      for (const Def<Buffer>& buffer : block->alloc_buffers) {
        auto it = moved.find(buffer);
        homes[it == moved.end() ? NodeRef(block) : NodeRef(it->second)].push_back(buffer);
      }
    });
    function = with_body(func, move_allocations(func->body, std::move(homes)));
    changed = true;
  }
  return changed ? make<Module>(std::move(result), module.span()) : module;
}

}  // namespace tilewright::analysis
