#include "schedule/cache.h"

#include "analysis/accesses.h"
#include "analysis/unsettled.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/inline.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Result<int64_t> buffer_position(const BufferIndex& index, const std::vector<Ref<BufferRegion>>& regions,
                                const Place& block, const std::string& what, const std::string& code) {
  auto count = static_cast<int64_t>(regions.size());
  std::string names;
  for (const auto& region : regions) names += (names.empty() ? "" : ", ") + region->buffer->name;
  std::string hint = "it " + what + "s: " + (names.empty() ? "nothing" : names);
  if (auto* position = std::get_if<int64_t>(&index)) {
    if (*position >= 0 && *position < count) return *position;
    return refuse(code, describe(block) + " has no " + what + " number " + std::to_string(*position), block, hint);
  }
  int64_t found = -1;
  for (int64_t i = 0; i < count; ++i) {
    auto* name = std::get_if<std::string>(&index);
    bool same = name ? regions[i]->buffer->name == *name : regions[i]->buffer == std::get<NodeRef>(index);
    if (!same) continue;
    if (found >= 0) {
      return refuse(code, describe(block) + " " + what + "s several buffers named '" + *name + "'", block,
                    "say which one by its position");
    }
    found = i;
  }
  if (found >= 0) return found;
  auto* name = std::get_if<std::string>(&index);
  return refuse(code, describe(block) + " " + what + "s no buffer " + (name ? "named '" + *name + "'" : "like this"),
                block, hint);
}

Result<std::pair<bool, int64_t>> touched_position(const TouchedBuffer& buffer, const Place& block,
                                                  const std::string& code) {
  const Block& node = block.block();
  bool reads = buffer.kind == "read";
  if (buffer.kind.empty()) reads = !buffer_position(buffer.index, node.writes, block, "write", code).ok();
  TW_TRY(position,
         buffer_position(buffer.index, reads ? node.reads : node.writes, block, reads ? "read" : "write", code));
  return std::pair(reads, position);
}

namespace {

Result<CachedAccess> cached_access(const State& state, BlockRV name, bool is_read, const BufferIndex& index,
                                   const std::string& storage_scope, const CachedAccessCodes& codes) {
  TW_TRY(block, state.find(name));
  const int scope = (*block.tree)[block.at].scope;
  if (scope == Tree::kNone) {
    return refuse(codes.access, std::string("the root block is not a ") + (is_read ? "reader" : "writer"), block,
                  "name a block inside of it");
  }
  const auto& regions = is_read ? block.block().reads : block.block().writes;
  TW_TRY(position, buffer_position(index, regions, block, is_read ? "read" : "write", codes.access));
  TW_RETURN_IF_ERROR(require_memory_scope(storage_scope, block, codes.memory));
  return CachedAccess{block, scope, position, regions[position]};
}

}  // namespace

Result<CachedAccess> cached_read(const State& state, BlockRV block, const BufferIndex& index,
                                 const std::string& storage_scope, const CachedAccessCodes& codes) {
  return cached_access(state, block, true, index, storage_scope, codes);
}

Result<CachedAccess> cached_write(const State& state, BlockRV block, const BufferIndex& index,
                                  const std::string& storage_scope, const CachedAccessCodes& codes) {
  return cached_access(state, block, false, index, storage_scope, codes);
}

Status require_only_blocks(const Place& block, int scope, const char* code) {
  const NodeBase* bare = analysis::unsettled_statement(*block.tree, scope);
  if (!bare) return Ok{};
  return refuse(code, "a statement in the scope of " + describe(block) + " is not in a block", {NodeRef(bare)},
                "put it into a block");
}

Status require_one_name(const Place& block, int scope, const Ref<Buffer>& buffer, const char* code, const char* hint) {
  const Ref<Buffer> other = other_name(*block.tree, scope, buffer);
  if (!other.defined()) return Ok{};
  return refuse(code,
                "in the scope of " + describe(block) + ", '" + buffer->name + "' is known as '" + other->name + "' too",
                block, hint);
}

bool is_allocated(const Tree& tree, const Ref<Buffer>& buffer) {
  return any_of(tree.blocks(), [&](int at) {
    const auto& own = tree.block_at(at).alloc_buffers;
    return is_contained(own, buffer);
  });
}

namespace {
bool is_transparent(Kind kind) {
  return kind == Kind::kSeqStmt || kind == Kind::kAllocateConst || kind == Kind::kDeclBuffer;
}

int innermost_body(const Tree& tree, int scope) {
  // The body is the last child: an init may precede it.
  int body = tree.children(scope).back();
  while (tree[body].node->kind == Kind::kAllocateConst || tree[body].node->kind == Kind::kDeclBuffer) {
    body = tree.children(body).back();
  }
  return body;
}
}  // namespace

bool CopyPlace::is_outside_loops(const Tree& tree) const {
  int at = tree[near].parent;
  while (at != scope && is_transparent(tree[at].node->kind)) at = tree[at].parent;
  return at == scope;
}

CopyPlace start_of(const Tree& tree, int scope) { return {scope, innermost_body(tree, scope), false}; }
CopyPlace end_of(const Tree& tree, int scope) { return {scope, innermost_body(tree, scope), true}; }

CopyPlace before_first(const Tree& tree, int scope, int from, const std::vector<int>& blocks) {
  int innermost = scope, first = Tree::kNone;
  for (int block : blocks) {
    int both[] = {from, block};
    int common = tree.common_ancestor(both);
    if (first != Tree::kNone && (common < innermost || (common == innermost && first < block))) continue;
    innermost = common;
    first = block;
  }
  return {scope, tree.child_towards(innermost, first), false};
}

bool share_a_loop(const Tree& tree, int scope, int a, int b) {
  int both[] = {a, b};
  for (int at = tree.common_ancestor(both); at != scope; at = tree[at].parent) {
    if (tree[at].is_loop ? !is_const_int(tree.for_at(at).extent, 1) : tree[at].node->kind == Kind::kWhile) return true;
  }
  return false;
}

Ref<Buffer> other_name(const Tree& tree, int scope, const Ref<Buffer>& buffer) {
  for (const BlockRealize* child : analysis::Scope::of(tree, scope).children()) {
    for (const auto* regions : {&child->block->reads, &child->block->writes}) {
      for (const Ref<BufferRegion>& region : *regions) {
        const Ref<Buffer>& other = region->buffer;
        if (other->data != buffer->data && tree.same_memory(other, buffer)) return other;
      }
    }
  }
  return {};
}

std::optional<Written> written_by(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                  const std::vector<int>& loops, arith::Analyzer& analyzer) {
  const BlockRealize& realize = *tree.realize_at(writer);
  if (auto box = analysis::produced(realize, write, tree, loops, analyzer)) return Written{*box, bool_imm(true), {}};
  Expr condition = analysis::outer_condition(realize.predicate, analysis::inputs_of(tree, loops));
  analysis::assume_all(condition, analyzer);
  auto box = analysis::produced(realize, write, tree, loops, analyzer);
  if (!box) box = analysis::produced_by_sums(tree, writer, write, loops, analyzer);
  if (!box) return std::nullopt;
  return Written{*box, condition, {}};
}

std::optional<Written> written_with_mask(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                         const std::vector<int>& loops, arith::Analyzer& analyzer) {
  if (auto written = written_by(tree, writer, write, loops, analyzer)) return written;
  // written_by() has made the analyzer assume this condition.
  const Expr condition =
      analysis::outer_condition(tree.realize_at(writer)->predicate, analysis::inputs_of(tree, loops));
  auto elements = analysis::produced_under_mask(tree, writer, write, loops, analyzer);
  if (!elements) return std::nullopt;
  return Written{elements->box, condition, elements->mask};
}

void set_mask(Copy& copy, const Written& written, const Ref<BufferRegion>& write) {
  copy.condition = written.condition;
  copy.mask = written.mask;
  for (const Ref<Range>& r : write->region) copy.mask_indices.push_back(r->min);
}

Copy make_copy(const Ref<Buffer>& original, const std::string& scope, arith::Region region, bool compact) {
  Copy copy;
  copy.original = original;
  copy.name = original->name + "_" + scope;
  copy.condition = bool_imm(true);
  copy.compact = compact;
  std::vector<Expr> shape;
  for (size_t d : indices_of(region)) {
    shape.push_back(compact ? region[d]->extent : original->shape[d]);
    copy.offset.push_back(compact ? region[d]->min : zero(region[d]->min.dtype()));
  }
  copy.region = std::move(region);
  copy.cache = decl_buffer(std::move(shape), original->dtype, copy.name, scope.empty() ? "global" : scope);
  return copy;
}

bool Copy::same_layout() const {
  bool same = original->strides.empty() && original->axis_separators.empty() &&
              (!original->elem_offset.defined() || is_const_int(original->elem_offset, 0));
  for (size_t d : indices_of(offset)) {
    same &= is_const_int(offset[d], 0) && structural_equal(original->shape[d], cache->shape[d]);
  }
  return same;
}

arith::Region Copy::whole() const {
  arith::Region region;
  for (size_t d : indices_of(offset)) region.push_back(range(zero(offset[d].dtype()) - offset[d], original->shape[d]));
  return region;
}

Stmt copy_nest(const Copy& copy, bool into_cache, Ref<Block>* made) {
  Block block;
  std::vector<Ref<Var>> loops;
  std::vector<Expr> values, original, cache;
  BufferRegion from{copy.original, {}}, to{copy.cache, {}};
  for (size_t d : indices_of(copy.region)) {
    const Range& r = *copy.region[d];
    std::string number = std::to_string(d);
    DataType dtype = r.extent.dtype();
    loops.push_back(var("ax" + number, dtype));
    Ref<Var> axis = var("v" + number, dtype);
    // The axes of a compact cache start at 0; a cache of the original's shape keeps the indices.
    Expr size = copy.compact ? r.extent : cast(dtype, copy.original->shape[d]);
    block.iter_vars.push_back(make<IterVar>(
        {.dom = range(zero(dtype), std::move(size)), .var = axis, .iter_type = IterType::kDataPar, .thread_tag = ""}));
    values.push_back(copy.compact ? Expr(loops.back()) : r.min + loops.back());
    original.push_back(copy.offset[d] + axis);
    cache.push_back(axis);
    from.region.push_back(range(original.back(), one(dtype)));
    to.region.push_back(range(cache.back(), one(cache.back().dtype())));
  }
  block.name_hint = copy.name;
  Ref<BufferRegion> outside = make(std::move(from)), inside = make(std::move(to));
  if (into_cache) {
    block.reads = {outside};
    block.writes = {inside};
    block.body = store(copy.cache, load(copy.original, original), cache);
  } else {
    block.reads = {inside};
    block.writes = {outside};
    block.body = store(copy.original, load(copy.cache, cache), original);
  }
  *made = with_reads_of_indices(std::move(block));
  Expr condition = copy.condition;
  if (copy.mask.defined()) {
    VarMap element;
    for (size_t d : indices_of(values)) {
      element.emplace(copy.mask_indices[d], cast(copy.mask_indices[d].dtype(), copy.offset[d] + values[d]));
    }
    condition = logical_and(condition, arith::Analyzer().simplify(substitute(copy.mask, element)));
  }
  Stmt nest = make<BlockRealize>({.iter_values = std::move(values), .predicate = condition, .block = *made});
  for (size_t d = loops.size(); d-- > 0;) nest = loop(loops[d], copy.region[d]->extent, std::move(nest));
  return nest;
}

namespace {
Expr behind(const Expr& index, const Expr& offset) {
  if (is_const_int(offset, 0)) return index;
  return arith::Analyzer().simplify(index - offset);
}

/// Views have the memory scope of the buffers that they view.
Ref<Block> with_views_in(const std::string& scope, const Ref<Block>& block, const Ref<Buffer>& original) {
  std::unordered_map<NodeRef, Ref<Var>> moved{{original->data, {}}};
  visit(block, [&](const Ref<MatchBufferRegion>& match) {
    if (!moved.count(match->source->buffer->data)) return;
    Var data = *match->buffer->data;
    const PointerType* type = data.type_annotation.as<PointerType>();
    if (!type) return;
    data.type_annotation = make<PointerType>({type->element_type, scope});
    moved[match->buffer->data] = make(std::move(data), match->buffer->data.span());
  });
  moved.erase(original->data);
  if (moved.empty()) return block;
  return rewrite(block, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(moved, v, v); });
}
/// Replaces the pointer where it is used as an expression; buffers are unchanged.
Ref<Block> with_pointers(const Ref<Block>& block, const Copy& copy) {
  return rewrite(
      block, [](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; },
      [&](const Ref<Var>& v, Rewriter&) -> Expr { return v == copy.original->data ? copy.cache->data : v; });
}
}  // namespace

bool uses_pointer(const Ref<Block>& block, const Ref<Buffer>& buffer) {
  bool found = false;
  analysis::for_each_access(block, analysis::Nested::kEnter, [&](const analysis::Access& access) {
    found |= access.form == analysis::Access::Form::kPointer && access.pointer == buffer->data;
    found |= access.form == analysis::Access::Form::kAddress && !access.is_atomic && access.named == buffer;
  });
  return found;
}

Status check_pointers(const Tree& tree, const std::vector<int>& blocks, const Copy& copy, const char* code) {
  if (copy.same_layout()) return Ok{};
  for (int at : blocks) {
    if (!uses_pointer(tree.block_ref(at), copy.original)) continue;
    return refuse(code,
                  describe_block(tree.block_at(at)) + " uses the pointer of '" + copy.original->name +
                      "', and the elements of a copy would have another memory layout",
                  {tree.stmt(at)}, "a copy of the whole of a compact buffer is laid out like it");
  }
  return Ok{};
}

std::optional<analysis::Obstacle> why_not_all_written(const State& state, const Place& place, int block,
                                                      const Ref<Buffer>& buffer) {
  const auto& map = state.function_at(place.func).as<PrimFunc>()->buffer_map;
  if (any_of(map, [&](const auto& entry) { return entry.second == buffer; })) return {};
  const Tree& tree = *place.tree;
  for (int at = block, reader = place.at; at != Tree::kNone; reader = at, at = tree[at].scope) {
    const analysis::Scope& scope = analysis::Scope::of(tree, at);
    std::vector<int> writers;
    for (int child : scope.writers(buffer)) writers.push_back(scope.position(tree, child));
    auto is_before = [&](int writer) { return writer <= reader || share_a_loop(tree, at, reader, writer); };
    if (any_of(writers, is_before)) {
      if (at == block) return std::nullopt;
      return writers.size() > 1 ? analysis::why_inputs_incomplete(tree, reader)
                                : analysis::why_not_covered(tree, writers[0], reader, buffer);
    }
    const auto& allocated = tree.block_at(at).alloc_buffers;
    if (is_contained(allocated, buffer)) {
      return analysis::Obstacle{"nothing has written '" + buffer->name + "' where " +
                                    describe_block(tree.block_at(at)) + " allocates it: there is nothing to copy",
                                {place.node()}};
    }
  }
  return std::nullopt;
}

Ref<Block> with_axes_of(const Ref<Block>& before, const Ref<Block>& changed) {
  if (changed->iter_vars == before->iter_vars) return changed;
  return with_field(changed, &Block::iter_vars, before->iter_vars);
}

Ref<Block> redirect(const Ref<Block>& before, const Copy& copy, bool reads, bool writes) {
  bool same_scope = copy.cache->scope() == copy.original->scope();
  Ref<Block> block = same_scope ? before : with_views_in(copy.cache->scope(), before, copy.original);
  if (copy.same_layout() && uses_pointer(block, copy.original)) block = with_pointers(block, copy);
  auto shifted = [&](std::vector<Expr> indices) {
    for (size_t d : indices_of(indices)) indices[d] = behind(indices[d], copy.offset[d]);
    return indices;
  };
  auto region = [&](const Ref<BufferRegion>& old) {
    if (old->buffer != copy.original) return old;
    BufferRegion moved{copy.cache, {}};
    for (size_t d : indices_of(old->region)) {
      moved.region.push_back(range(behind(old->region[d]->min, copy.offset[d]), old->region[d]->extent));
    }
    return make(std::move(moved), old.span());
  };
  return rewrite(
      block,
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        return reads ? moved_access(old, walk, copy.original, copy.cache, shifted) : walk.descend(old);
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        return writes ? moved_access(old, walk, copy.original, copy.cache, shifted) : walk.descend(old);
      },
      // Loads in shapes are evaluated where the buffer is declared, perhaps outside of this block, so they stay.
      [](const Ref<Buffer>& old, Rewriter&) -> NodeRef { return old; },
      [&](const Ref<MatchBufferRegion>& old, Rewriter& walk) -> NodeRef {
        Ref<MatchBufferRegion> inner = walk.descend(old);
        return with_field(inner, &MatchBufferRegion::source, region(inner->source));
      },
      [&](const Ref<Prefetch>& old, Rewriter& walk) -> Stmt {
        Prefetch moved = *walk.descend(old);
        if (reads) moved.region = region(moved.region);
        return make(std::move(moved), old.span());
      },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        Block moved = *walk.descend(old);
        if (reads) {
          for (auto& read : moved.reads) read = region(read);
        }
        if (writes) {
          for (auto& write : moved.writes) write = region(write);
        }
        return make(std::move(moved), old.span());
      });
}

void place_copy(TreeEdit& edit, const CopyPlace& place, const Copy& copy, Stmt nest) {
  place.after ? edit.insert_after(place.near, std::move(nest)) : edit.insert_before(place.near, std::move(nest));
  edit.change_block(place.scope, [cache = copy.cache](Block& block) { block.alloc_buffers.push_back(cache); });
}

}  // namespace tilewright::schedule
