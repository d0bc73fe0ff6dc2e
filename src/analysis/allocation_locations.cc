#include "analysis/allocation_locations.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/plain_store.h"
#include "analysis/scope.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/regions.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {
namespace {

/// Loops and blocks around an access, outermost first; borrowed.
using Path = std::vector<const NodeBase*>;

template <class T>
const T* as(const NodeBase* node) {
  return node->kind == KindOf<T>::kind ? &static_cast<const NodeOf<T>*>(node)->data : nullptr;
}

/// Consecutive accesses to a buffer in one innermost block.
struct Use {
  const Block* block;
  Path path;
  bool reads = false;
};

struct Uses {
  Path common;
  std::vector<Use> list;  ///< in order of execution
};

bool touches(const std::vector<Ref<BufferRegion>>& regions, const NodeRef& buffer) {
  return any_of(regions, [&](const auto& region) { return region->buffer == buffer; });
}

bool owns(const NodeBase* node, const NodeRef& buffer) {
  const Block* block = as<Block>(node);
  return block && any_of(block->alloc_buffers, [&](const Def<Buffer>& own) { return own == buffer; });
}

/// Accesses to the buffers that blocks allocate, by block.
class BufferUses : public Memo::Fact {
 public:
  explicit BufferUses(const Stmt& body) {
    const BlockRealize* root = body.as<BlockRealize>();
    const Tree* tree = root ? &Tree::of(root->block) : nullptr;
    if (root) root_ = &*root->block;
    auto declare = [&](const Block& block) {
      for (const Def<Buffer>& buffer : block.alloc_buffers) {
        by_data_[buffer->data] = buffer;
        uses_[buffer];
        declared_.push_back(buffer);
      }
    };
    if (!tree) visit(body, [&](const Ref<Block>& block) { declare(*block); });
    for (int at = 0; tree && at < tree->size(); ++at) {
      if ((*tree)[at].is_block) declare(tree->block_at(at));
    }
    if (declared_.empty()) return;
    if (!tree || !note_plainly(*tree)) {
      for_each_access(body, Nested::kEnter, [&](const Access& access) { note(access); });
      visit(body, [&](const Ref<BlockRealize>& realize) { note_carried(*realize); });
    }
    for (int at = 1; tree && at < tree->size(); ++at) {
      if (!(*tree)[at].is_block || (*tree)[at].in_init) continue;
      auto [it, fresh] = positions_.emplace(&tree->block_at(at), at);
      if (!fresh) it->second = Tree::kNone;  // one node in two places
    }
  }
  /// Returns the uses in the function with this root block, which are computed once.
  static const BufferUses& of(const Ref<Block>& root) {
    return root->id.memo.get<BufferUses>([&] { return BufferUses(realized(root)); });
  }

  const std::vector<Ref<Buffer>>& declared() const { return declared_; }
  /// Returns the uses of a buffer; null if it is allocated elsewhere or not accessed.
  const Uses* find(const NodeRef& buffer) const {
    auto* uses = find_value(uses_, buffer);
    return uses && !uses->list.empty() ? uses : nullptr;
  }
  /// Whether the loop drives a reduction of a block around the use that writes the buffer.
  bool carries(const Use& use, const NodeRef& buffer, const NodeRef& loop_var) const {
    return any_of(use.path, [&](const NodeBase* node) {
      const Block* block = as<Block>(node);
      auto* found = find_value(carried_, block);
      if (!found || !touches(block->writes, buffer)) return false;
      return is_contained(*found, loop_var);
    });
  }
  /// Returns the position of the block in the tree of the function.
  int position(const Block* block) const { return find_value_or(positions_, block, Tree::kNone); }

 private:
  void note(const Access& access) {
    NodeRef buffer = access.named;
    if (access.form == Access::Form::kPointer) buffer = find_value_or(by_data_, access.pointer, NodeRef());
    if (!uses_.contains(buffer)) return;
    // Loops inside of the innermost block are omitted, since they belong to the block; an access outside of all inner
    // blocks keeps its loops.
    const Block* block = innermost_block(access.around);
    const bool bare = block && block == root_;
    const size_t inside = bare ? 0 : inside_block(access.around).size();
    Path path;
    for (const Surrounding& s : access.around.first(access.around.size() - inside)) {
      if (s.node.is<For>() || s.node.is<While>() || s.node.is<Block>()) path.push_back(s.node.get());
    }
    note(buffer, block, std::move(path), access.reads);
  }

  void note(const NodeRef& buffer, const Block* block, Path path, bool reads) {
    auto* found = find_value(uses_, buffer);
    if (!found) return;
    Uses& uses = *found;
    if (uses.list.empty()) {
      uses.common = path;
    } else {
      size_t same = 0;
      while (same < std::min(path.size(), uses.common.size()) && path[same] == uses.common[same]) ++same;
      uses.common.resize(same);
    }
    if (uses.list.empty() || uses.list.back().block != block) uses.list.push_back({block, std::move(path)});
    uses.list.back().reads |= reads;
  }

  /// A fast path without a walk over all accesses, for a root block over plain blocks (plain_store.h). Returns false
  /// for other functions.
  bool note_plainly(const Tree& tree) {
    if (Scope::of(tree, 0).bare_statement()) return false;
    for (int at = 0; at < tree.size(); ++at) {  // these access memory, or name it
      const Kind kind = tree[at].node->kind;
      if (kind == Kind::kDeclBuffer || kind == Kind::kLetStmt) return false;
    }
    std::vector<const PlainBlock*> blocks;
    for (int at : tree.blocks()) {
      if (at == 0) continue;
      const BlockRealize& realize = *tree.realize_at(at);
      const auto& plain = PlainBlock::of(*realize.block);
      if (tree[at].scope != 0 || !plain || tree[at].binds_data) return false;
      blocks.push_back(&*plain);
    }
    for (size_t i : indices_of(blocks)) {
      int at = tree.blocks()[i + 1];
      Path path = {tree[0].node};
      for (int loop : tree.loops_above(at)) path.push_back(tree[loop].node);
      path.push_back(tree.block_ref(at).get());
      const PlainBlock& plain = *blocks[i];
      for (const PlainStore* part : {plain.init ? &*plain.init : nullptr, &plain.body}) {
        if (!part) continue;
        for (const BufferLoad* load : part->loads) note(load->buffer, plain.block, path, true);
        note(part->store->buffer, plain.block, path, false);
      }
      note_carried(*tree.realize_at(at));
    }
    return true;
  }

  /// Records the loops that drive axes other than data-parallel ones.
  void note_carried(const BlockRealize& realize) {
    std::vector<NodeRef> variables;
    for (size_t i : indices_of(realize.iter_values)) {
      if (realize.block->iter_vars[i]->iter_type == IterType::kDataPar) continue;
      visit(realize.iter_values[i], [&](const Ref<Var>& v) { variables.push_back(v); });
    }
    if (!variables.empty()) carried_[&*realize.block] = std::move(variables);
  }

  const Block* root_ = nullptr;
  std::unordered_map<NodeRef, NodeRef> by_data_;
  std::unordered_map<NodeRef, Uses> uses_;
  std::unordered_map<const Block*, std::vector<NodeRef>> carried_;
  std::unordered_map<const Block*, int> positions_;
  std::vector<Ref<Buffer>> declared_;
};

class LocationFinder {
 public:
  /// `tree`: the tree of the function, or null if it has no root block. `concurrent`: a loop that counts as parallel
  /// whatever its kind is; may be null.
  LocationFinder(const BufferUses& uses, const Tree* tree, const For* concurrent = nullptr)
      : uses_(uses), tree_(tree), concurrent_(concurrent) {}

  std::vector<AllocationLocation> find() const {
    std::vector<AllocationLocation> locations;
    for (const Ref<Buffer>& buffer : uses_.declared()) {
      if (const Uses* uses = uses_.find(buffer)) locations.push_back(place(buffer, *uses));
    }
    return locations;
  }

  /// Returns the location of a buffer; null if it is allocated elsewhere or not accessed.
  NodeRef location_of(const Ref<Buffer>& buffer) const {
    const Uses* uses = uses_.find(buffer);
    return uses ? place(buffer, *uses).location : NodeRef();
  }

 private:
  bool is_shared(const For& loop) const { return runs_on_threads(loop.kind) || &loop == concurrent_; }

  /// Whether each instance of the block stores to all elements of its declared write regions of the buffer.
  bool sets_all(int at, const NodeRef& buffer) const {
    const Ref<Block> block = tree_->block_ref(at);
    if (replaces_view(*block, buffer)) return true;
    const BlockFacts& facts = BlockFacts::of(block);
    bool all = facts.role != BlockRole::kOther && touches(block->writes, buffer);
    for (size_t i : indices_of(block->writes)) all &= block->writes[i]->buffer != buffer || facts.writes_all[i];
    return all;
  }

  /// Whether the block is a reduction whose init always runs first, so that it reads only its own results.
  bool starts_its_reduction(int at) const {
    return BlockFacts::of(tree_->block_ref(at)).role == BlockRole::kReduction &&
           !limits_reduction(*tree_->realize_at(at));
  }

  /// Returns the blocks that contain the two, directly below the innermost block around both. Returns the arguments if
  /// one contains the other.
  std::pair<int, int> in_common_scope(int writer, int reader) const {
    int both[] = {writer, reader};
    int scope = tree_->common_ancestor(both);
    if (scope == writer || scope == reader) return {writer, reader};
    if (!(*tree_)[scope].is_block) scope = (*tree_)[scope].scope;
    for (int* at : {&writer, &reader}) {
      while ((*tree_)[*at].scope != scope) *at = (*tree_)[*at].scope;
    }
    return {writer, reader};
  }

  /// Whether `writer`, or the block that contains it, has written all elements of the buffer that `reader` reads.
  bool covers(int writer, int reader, const Ref<Buffer>& buffer) const {
    if (sets_all(writer, buffer) && !why_not_covered(*tree_, writer, reader, buffer)) return true;
    auto [outer_writer, outer_reader] = in_common_scope(writer, reader);
    if (outer_writer == writer && outer_reader == reader) return false;
    return touches(tree_->block_at(outer_reader).reads, buffer) && sets_all(outer_writer, buffer) &&
           !why_not_covered(*tree_, outer_writer, outer_reader, buffer);
  }

  /// Whether each element that is read was written before, in the same iteration of the loops around both accesses.
  bool is_fresh(const Ref<Buffer>& buffer, const Uses& uses) const {
    std::vector<int> writers;
    for (const Use& one : uses.list) {
      int at = uses_.position(one.block);
      if (!tree_ || at == Tree::kNone) return false;
      const Block& block = tree_->block_at(at);
      bool writes = touches(block.writes, buffer);
      if (one.reads && !replaces_view(block, buffer)) {
        bool known = touches(block.reads, buffer)
                         ? any_of(writers, [&](int writer) { return covers(writer, at, buffer); })
                         : writes && starts_its_reduction(at);
        if (!known) return false;
      }
      if (writes) writers.push_back(at);
    }
    return true;
  }

  /// Whether the first block that uses the buffer writes elements and reads none.
  static bool starts_with_write(const NodeRef& buffer, const Uses& uses) {
    const Block* first = uses.list.front().block;
    if (!first || !touches(first->writes, buffer)) return false;
    return first->init.defined() || !touches(first->reads, buffer);
  }

  /// Returns the depth below the last loop, around all uses, for which the memory scope gives each iteration its own
  /// copy. The buffer carries no values across such loops, or loops around them. A loop that drives a reduction into
  /// the buffer ends the search, since all of its iterations, even on different threads, accumulate into one copy.
  size_t depth_of_private_copies(const Ref<Buffer>& buffer, const Uses& uses) const {
    size_t first = 0;
    for (size_t depth : indices_of(uses.common)) {
      const For* loop = as<For>(uses.common[depth]);
      if (!loop) continue;
      auto reduces = [&](const Use& one) { return uses_.carries(one, buffer, loop->loop_var); };
      if (any_of(uses.list, reduces)) break;
      const auto axis = thread_axis(*loop);
      if (axis && !memory_scope(buffer->scope()).is_shared_by(*axis)) first = depth + 1;
    }
    return first;
  }

  AllocationLocation place(const Ref<Buffer>& buffer, const Uses& uses) const {
    Path path = uses.common;
    size_t owner = 0;  // the block that declares the buffer: outer loops do not matter, since each instance has its own
    while (owner < path.size() && !owns(path[owner], buffer)) ++owner;
    bool writes_first = starts_with_write(buffer, uses);
    bool is_main_memory = memory_scope(buffer->scope()).rank == 0;
    std::optional<bool> fresh;  // computed only if needed, because it is expensive
    auto carries_values = [&](const NodeBase* node) {
      const For* loop = as<For>(node);
      if (!loop && node->kind != Kind::kWhile) return false;
      if (loop && is_main_memory && thread_axis(*loop)) return true;
      if (!writes_first || (loop && loop->kind == ForKind::kVectorized)) return true;
      for (const Use& one : uses.list) {
        if (loop && uses_.carries(one, buffer, loop->loop_var)) return true;
      }
      if (loop && ((is_shared(*loop) && !fresh) || is_const_int(loop->extent, 1))) return false;
      if (!fresh) fresh = is_fresh(buffer, uses);
      return !*fresh;
    };
    for (size_t depth = std::max(owner, depth_of_private_copies(buffer, uses)); depth < path.size(); ++depth) {
      if (!carries_values(path[depth])) continue;
      path.resize(depth);
      break;
    }
    // The innermost block of an access is not a location for allocations, unless it declares the buffer.
    while (path.size() > 1 && !as<For>(path.back()) && !owns(path.back(), buffer)) path.pop_back();
    AllocationLocation result{buffer, path.empty() ? NodeRef() : NodeRef(path.back()), {}};
    for (size_t depth = owner; depth < path.size(); ++depth) {
      const For* loop = as<For>(path[depth]);
      if (loop && is_shared(*loop)) result.shared = Ref<For>(path[depth]);
    }
    return result;
  }

  const BufferUses& uses_;
  const Tree* tree_;
  const For* concurrent_;
};

using Locations = std::unordered_map<NodeRef, std::vector<Def<Buffer>>>;

/// Moves allocations: each loop and block allocates exactly its entry of `locations`. Blocks outside of a buffer's new
/// location no longer declare regions of it, since the buffer is private to a statement inside of them. Other regions
/// whose bounds load such a buffer become whole buffers.
Stmt move_allocations(const Stmt& body, Locations locations) {
  std::unordered_set<NodeRef> hidden;  // buffers that are not allocated around the current statement
  visit(body,
        [&](const Ref<Block>& block) { hidden.insert(block->alloc_buffers.begin(), block->alloc_buffers.end()); });
  auto inside = [&](const std::vector<Def<Buffer>>& own, const auto& descend) {
    for (const Def<Buffer>& buffer : own) hidden.erase(buffer);
    auto result = descend();
    hidden.insert(own.begin(), own.end());
    return result;
  };
  return rewrite(
      body,
      [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
        auto is_hidden = [&](const Ref<BufferRegion>& region) { return hidden.contains(region->buffer); };
        Block outer = *block;
        std::erase_if(outer.reads, is_hidden);
        std::erase_if(outer.writes, is_hidden);
        for (auto* regions : {&outer.reads, &outer.writes}) {
          for (Ref<BufferRegion>& region : *regions) {
            const bool bounded_by_hidden =
                any_node(region, [&](const Ref<BufferLoad>& load) { return hidden.contains(load->buffer); });
            if (bounded_by_hidden) region = whole_region(region->buffer);
          }
        }
        std::vector<Def<Buffer>> own = locations[block];
        Block copy = *inside(own, [&] { return r.descend(make(std::move(outer), block.span())); });
        copy.alloc_buffers = std::move(own);
        return make(std::move(copy), block.span());
      },
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        std::vector<Def<Buffer>> own = locations[loop];
        Ref<For> inner = inside(own, [&] { return r.descend(loop); });
        if (own.empty()) return inner;
        Block host;
        host.alloc_buffers = std::move(own);
        host.body = inner->body;
        return with_body(inner, realized(make(std::move(host))));
      });
}

}  // namespace

bool is_allocated_below(const Tree& tree, int loop, const NodeRef& location) {
  if (const For* inner = location.as<For>()) return tree.contains(loop, tree.loop(inner->loop_var));
  const Block* block = location.as<Block>();
  int at = block ? tree.block(block->id.value) : Tree::kNone;
  return at != Tree::kNone && tree.contains(loop, at);
}

namespace {

/// A fast test for is_private_to(), without the list of accesses. True if the memory scope gives each thread of the
/// loop its own copy, all loops around it are thread-bound, only blocks below it access the buffer, and none of these
/// loops drives a reduction into the buffer.
bool is_plainly_private(const Tree& tree, int loop, const Ref<Buffer>& buffer) {
  auto axis = thread_axis(tree.for_at(loop));
  if (!axis || memory_scope(buffer->scope()).is_shared_by(*axis)) return false;
  std::vector<int> loops = tree.loops_above(loop);
  if (any_of(loops, [&](int at) { return !thread_axis(tree.for_at(at)); })) return false;
  loops.push_back(loop);
  if (Scope::of(tree, 0).bare_statement()) return false;
  const auto& own = tree.block_at(0).alloc_buffers;
  if (!is_contained(own, buffer)) return false;
  for (int at : tree.blocks()) {
    if (at == 0) continue;
    const Ref<Block> block = tree.block_ref(at);
    if (tree[at].scope != 0 || !block->match_buffers.empty() || !BlockFacts::of(block).undeclared.empty()) return false;
    const BlockRealize& realize = *tree.realize_at(at);
    if (tree[at].binds_data) return false;
    bool writes = touches(block->writes, buffer);
    if (!writes && !touches(block->reads, buffer)) continue;
    if (!tree.contains(loop, at)) return false;
    for (size_t i = 0; writes && i < realize.iter_values.size(); ++i) {
      if (is_data_parallel(block->iter_vars[i])) continue;
      auto drives = [&](int at) { return uses_var(realize.iter_values[i], tree.for_at(at).loop_var); };
      if (any_of(loops, drives)) return false;
    }
  }
  return true;
}

}  // namespace

bool is_private_to(const Tree& tree, int loop, const Ref<Buffer>& buffer) {
  if (is_plainly_private(tree, loop, buffer)) return true;
  LocationFinder finder(BufferUses::of(tree.block_ref(0)), &tree, &tree.for_at(loop));
  return is_allocated_below(tree, loop, finder.location_of(buffer));
}

std::vector<AllocationLocation> allocation_locations(const Ref<PrimFunc>& func) {
  const BlockRealize* root = func->body.as<BlockRealize>();
  return LocationFinder(BufferUses(func->body), root ? &Tree::of(root->block) : nullptr).find();
}
std::vector<AllocationLocation> allocation_locations(const Ref<Block>& root) {
  return LocationFinder(BufferUses::of(root), &Tree::of(root)).find();
}

Ref<PrimFunc> with_planned_allocations(const Ref<PrimFunc>& func) {
  Locations locations;
  for (AllocationLocation& location : allocation_locations(func))
    locations[location.location].push_back(location.buffer);
  return any_node(func->body, [&](const Ref<Block>& block) { return !block->alloc_buffers.empty(); })
             ? with_body(func, move_allocations(func->body, std::move(locations)))
             : func;
}

Ref<Module> with_private_buffers(const Ref<Module>& module) {
  Module result = *module;
  bool changed = false;
  for (auto& [name, function] : result.functions) {
    Ref<PrimFunc> func = function.cast<PrimFunc>();
    if (!func.defined()) continue;
    std::unordered_map<NodeRef, Ref<For>> moved;
    for (AllocationLocation& location : allocation_locations(func)) {
      if (location.shared.defined()) moved[location.buffer] = location.shared;
    }
    if (moved.empty()) continue;
    Locations locations;
    visit(func->body, [&](const Ref<Block>& block) {
      for (const Def<Buffer>& buffer : block->alloc_buffers) {
        locations[find_value_or(moved, buffer, block)].push_back(buffer);
      }
    });
    function = with_body(func, move_allocations(func->body, std::move(locations)));
    changed = true;
  }
  return changed ? make(std::move(result), module.span()) : module;
}

}  // namespace tilewright::analysis
