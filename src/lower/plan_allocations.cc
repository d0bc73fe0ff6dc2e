// Move the buffers of blocks to the innermost place that holds all their accesses.
//
//   Before                                   After
//   with T.block("root"):                    with T.block("root"):
//     t = T.alloc_buffer((64, 64))             for i in range(64):
//     for i in range(64):                        with T.block(""):
//       for j in range(64):                        t = T.alloc_buffer((64, 64))
//         with T.block("t"): t[i, j] = ...         for j in range(64):
//       for j in range(64):                          with T.block("t"): t[i, j] = ...
//         with T.block("B"): ... = t[i, j]         for j in range(64):
//                                                    with T.block("B"): ... = t[i, j]
//
// Needs      blocks with axes and inits
// Ensures    a buffer is allocated inside a loop only if no value in it outlives an iteration of that loop. Loops that
//            carry values stay outside: those that a reduction or scan axis of an accessing block runs over, and those
//            whose iterations would read the buffer before writing it. Nothing is allocated in a vectorized loop.
// Placement  first: types of axes and inits tell which loops carry values. Before compaction, which shrinks a buffer
//            to what is accessed where it is allocated.
#include <algorithm>

#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

/// Loops and blocks around something, outermost first.
using Path = std::vector<NodeRef>;

struct Accesses {
  Path common;
  bool seen = false;
  std::vector<const Block*> blocks;  ///< innermost blocks of the accesses, in order of execution
  std::vector<Path> paths;           ///< of these blocks
};

bool touches(const std::vector<Ref<BufferRegion>>& regions, const NodeRef& buffer) {
  for (const Ref<BufferRegion>& region : regions) {
    if (region->buffer == buffer) return true;
  }
  return false;
}

class Planner {
 public:
  explicit Planner(const Stmt& body) {
    visit(body, [&](const Ref<Block>& block) {
      for (const Def<Buffer>& buffer : block->alloc_buffers) {
        by_data_[buffer->data] = buffer;
        accesses_[buffer];
        declared_.push_back(buffer);
      }
    });
    if (accesses_.empty()) return;
    collect(body);
    for (const Ref<Buffer>& buffer : declared_) {
      const Accesses& access = accesses_.at(buffer);
      if (access.seen) homes_[place(buffer, access)].push_back(buffer);
    }
  }

  Stmt apply(const Stmt& body) {
    if (accesses_.empty()) return body;
    return rewrite(
        body,
        [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
          Block copy = *r.descend(block);
          copy.alloc_buffers = homes_[block];
          return make<Block>(std::move(copy), block.span());
        },
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          Ref<For> inner = r.descend(loop);
          std::vector<Def<Buffer>> own = homes_[loop];
          if (own.empty()) return inner;
          Block host;
          host.alloc_buffers = std::move(own);
          host.body = inner->body;
          For copy = *inner;
          copy.body = make<BlockRealize>({{}, bool_imm(true), make<Block>(std::move(host))});
          return make<For>(std::move(copy), loop.span());
        });
  }

 private:
  void collect(const Stmt& body) {
    auto note = [&](const NodeRef& buffer) {
      auto it = accesses_.find(buffer);
      if (it == accesses_.end()) return;
      Accesses& access = it->second;
      // Loops inside of the innermost block belong to that block.
      Path path(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(innermost_block_));
      const Block* block = path.empty() ? nullptr : path.back().as<Block>();
      if (!access.seen) {
        access.common = path;
        access.seen = true;
      } else {
        size_t same = 0;
        while (same < std::min(path.size(), access.common.size()) && path[same] == access.common[same]) ++same;
        access.common.resize(same);
      }
      if (access.blocks.empty() || access.blocks.back() != block) {
        access.blocks.push_back(block);
        access.paths.push_back(path);
      }
    };
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          v(loop->min);
          v(loop->extent);
          path_.push_back(loop);
          v(loop->body);
          path_.pop_back();
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          v.descend(realize);
          note_carried(*realize);
        },
        [&](const Ref<Block>& block, Visitor& v) {
          path_.push_back(block);
          size_t outer = std::exchange(innermost_block_, path_.size());
          for (const Ref<MatchBufferRegion>& match : block->match_buffers) note(match->source->buffer);
          v(block->init);
          v(block->body);
          innermost_block_ = outer;
          path_.pop_back();
        },
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          note(load->buffer);
          for (const Expr& index : load->indices) v(index);
          v(load->predicate);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          v(store->value);
          for (const Expr& index : store->indices) v(index);
          v(store->predicate);
          note(store->buffer);
        },
        [&](const Ref<Var>& v) {
          auto it = by_data_.find(v);
          if (it != by_data_.end()) note(it->second);
        });
  }

  /// Loops over which the block's reductions and scans run.
  void note_carried(const BlockRealize& realize) {
    std::vector<NodeRef> variables;
    for (size_t i = 0; i < realize.iter_values.size(); ++i) {
      if (realize.block->iter_vars[i]->iter_type == IterType::kDataPar) continue;
      visit(realize.iter_values[i], [&](const Ref<Var>& v) { variables.push_back(v); });
    }
    if (!variables.empty()) carried_[realize.block.get()] = std::move(variables);
  }

  bool carries(const Block* block_data, const Path& path, const NodeRef& loop_var) const {
    for (const NodeRef& node : path) {
      if (node.as<Block>() != block_data) continue;
      auto it = carried_.find(node.get());
      if (it == carried_.end()) return false;
      return std::find(it->second.begin(), it->second.end(), loop_var) != it->second.end();
    }
    return false;
  }

  /// Whether every iteration of the loop at `depth` of the path writes the buffer before reading it.
  static bool starts_with_write(const NodeRef& buffer, const Accesses& access) {
    const Block* first = access.blocks.front();
    if (!first || !touches(first->writes, buffer)) return false;
    return first->init.defined() || !touches(first->reads, buffer);
  }

  NodeRef place(const NodeRef& buffer, const Accesses& access) const {
    bool fresh = starts_with_write(buffer, access);
    Path path = access.common;
    size_t owner = 0;  // whose instances each have a buffer of their own: nothing outside matters
    while (owner < path.size() && !owns(path[owner], buffer)) ++owner;
    for (size_t depth = owner; depth < path.size(); ++depth) {
      const For* loop = path[depth].as<For>();
      if (!loop) continue;
      bool carried = !fresh || loop->kind == ForKind::kVectorized;
      for (size_t i = 0; i < access.blocks.size(); ++i) {
        if (!access.blocks[i] || !touches(access.blocks[i]->writes, buffer)) continue;
        carried |= carries(access.blocks[i], access.paths[i], loop->loop_var);
      }
      if (carried) {
        path.resize(depth);
        break;
      }
    }
    // The innermost block of an access holds its own loops; it is no place to allocate in, unless it is the owner.
    while (!path.empty() && !path.back().is<For>() && !owns(path.back(), buffer) && path.size() > 1) path.pop_back();
    return path.empty() ? NodeRef() : path.back();
  }

  static bool owns(const NodeRef& node, const NodeRef& buffer) {
    const Block* block = node.as<Block>();
    if (!block) return false;
    for (const Def<Buffer>& own : block->alloc_buffers) {
      if (own == buffer) return true;
    }
    return false;
  }

  Path path_;
  size_t innermost_block_ = 0;
  std::unordered_map<NodeRef, NodeRef> by_data_;
  std::unordered_map<NodeRef, Accesses> accesses_;
  std::unordered_map<const NodeBase*, std::vector<NodeRef>> carried_;
  std::vector<Ref<Buffer>> declared_;
  std::unordered_map<NodeRef, std::vector<Def<Buffer>>> homes_;
};

}  // namespace

PassResult plan_allocations(const Ref<PrimFunc>& func, PassContext&) {
  Planner planner(func->body);
  return with_body(func, planner.apply(func->body));
}

}  // namespace tilewright::lower
