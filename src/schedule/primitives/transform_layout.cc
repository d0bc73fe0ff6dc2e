// Store the elements of an allocated buffer in another order.
//
//   Before                                   After  sch.transform_layout(B, "B", lambda i, j: (j // 4, i, j % 4))
//   B = T.alloc_buffer((16, 8))              B = T.alloc_buffer((2, 16, 4))
//   for i, j in T.grid(16, 8):               for i, j in T.grid(16, 8):
//     with T.block("B"):                       with T.block("B"):
//       vi, vj = T.axis.remap("SS", [i, j])      vi, vj = T.axis.remap("SS", [i, j])
//       B[vi, vj] = A[vi, vj] + 1.0              B[vj // 4, vi, vj % 4] = A[vi, vj] + 1.0
//
// Requires  P1 the block touches the buffer, and the map takes as many indices as it has dimensions
//           P2 a block allocates the buffer, compact, and it is used by plain loads and stores only
//           P3 the map is built of +, -, *, // and %, takes different indices to different ones, and its images start
//              at 0
//           P4 it leaves no gaps, or assume_injective_transform is set
//           P5 regions of several elements are boxes again
#include <algorithm>

#include "arith/iter_map.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/cache.h"
#include "schedule/edit.h"

namespace tilewright::schedule {
namespace {

Expr element_count(const std::vector<Expr>& shape) {
  Expr count = i64(1);
  for (const Expr& extent : shape) count = count * cast(DataType::int_(64), extent);
  return count;
}

/// Old indices to new ones, for one buffer.
class Layout {
 public:
  Layout(const Ref<Buffer>& buffer, const IndexMap& map) : old_(buffer), map_(map) {}

  /// Works out the new buffer; with the requirement that does not hold where there is none.
  Status prepare(const Place& block, bool gaps_allowed) {
    for (const Expr& e : map_.final_indices) {
      bool plain = true;
      visit(
          e, [&](const Ref<Call>&) { plain = false; }, [&](const Ref<BufferLoad>&) { plain = false; },
          [&](const Ref<Select>&) { plain = false; }, [&](const Ref<Min>&) { plain = false; },
          [&](const Ref<Max>&) { plain = false; });
      if (!plain || !e.dtype().is_int()) {
        return refuse("transform_layout/P3", "the index map holds " + analysis::brief(e), {block.node()},
                      "build new indices from the old ones with +, -, *, // and %");
      }
    }
    arith::IterDomains inputs;
    arith::Domains domains;
    arith::Analyzer analyzer;
    for (size_t d = 0; d < old_->shape.size(); ++d) {
      inputs.emplace_back(map_.initial_indices[d], range_of(old_->shape[d]));
    }
    inputs = arith::rounded_up(map_.final_indices, std::move(inputs));
    bool gaps = false;
    for (size_t d = 0; d < old_->shape.size(); ++d) {
      gaps |= !analyzer.can_prove_equal(inputs[d].second->extent, old_->shape[d]);
      domains[map_.initial_indices[d]] = arith::IntSet::of_range(inputs[d].second);
    }
    auto found = arith::detect_iter_map(map_.final_indices, inputs, {}, arith::IterMapLevel::kBijective, analyzer);
    if (!found.ok()) {
      return refuse("transform_layout/P3",
                    "it cannot be proved that different indices stay different: " + found.errors.front(),
                    {block.node()}, "every index has to be recoverable from the new ones");
    }
    std::vector<Expr> shape;
    for (const Expr& e : map_.final_indices) {
      arith::IntSet set = arith::eval_set(e, domains, analyzer);
      if (!set.is_bounded() || !analyzer.can_prove_equal(set.min, zero(set.min.dtype()))) {
        return refuse("transform_layout/P3", "the new index " + analysis::brief(e) + " does not start at 0",
                      {block.node()});
      }
      shape.push_back(analyzer.simplify(set.max + 1));
    }
    // Different indices go to different ones: as many elements as before leave no gap, of (i, j * 2) for instance.
    gaps |= !analyzer.can_prove_equal(element_count(shape), element_count(old_->shape));
    if (gaps && !gaps_allowed) {
      return refuse("transform_layout/P4", "the new buffer would have elements that stand for none of the old ones",
                    {block.node()}, "divide evenly, or set assume_injective_transform=True to allow them");
    }
    new_ = decl_buffer(std::move(shape), old_->dtype, old_->name, old_->scope());
    return Ok{};
  }

  const Ref<Buffer>& before() const { return old_; }
  const Ref<Buffer>& after() const { return new_; }

  std::vector<Expr> indices(const std::vector<Expr>& old, arith::Analyzer& analyzer) const {
    VarMap values;
    for (size_t d = 0; d < old.size(); ++d) values[map_.initial_indices[d]] = old[d];
    std::vector<Expr> result;
    for (const Expr& e : map_.final_indices) result.push_back(analyzer.simplify(substitute(e, values)));
    return result;
  }

  /// The box of the images; null when they are no box.
  Ref<BufferRegion> region(const BufferRegion& old, arith::Analyzer& analyzer) const {
    arith::Domains domains;
    Expr before = i64(1), after = i64(1);
    for (size_t d = 0; d < old.region.size(); ++d) {
      domains[map_.initial_indices[d]] = arith::IntSet::of_range(old.region[d]);
      before = before * cast(DataType::int_(64), old.region[d]->extent);
    }
    BufferRegion moved{new_, {}};
    for (const Expr& e : map_.final_indices) {
      arith::IntSet set = arith::eval_set(e, domains, analyzer);
      Ref<Range> dim = set.is_bounded() ? set.to_range(analyzer) : Ref<Range>();
      if (!dim.defined()) return {};
      moved.region.push_back(dim);
      after = after * cast(DataType::int_(64), dim->extent);
    }
    // Different indices have different images: if there are as many, the box holds nothing else.
    if (!analyzer.can_prove_equal(before, after)) return {};
    return make<BufferRegion>(std::move(moved));
  }

 private:
  Ref<Buffer> old_, new_;
  const IndexMap& map_;
};

struct Rewritten {
  Ref<Block> root;
  Ref<BufferRegion> no_box;  ///< a region that cannot be expressed
};

Rewritten rewrite_accesses(const Ref<Block>& root, const Layout& layout) {
  Rewritten result;
  arith::Analyzer analyzer;
  auto region = [&](const Ref<BufferRegion>& old) {
    if (old->buffer != layout.before()) return old;
    Ref<BufferRegion> moved = layout.region(*old, analyzer);
    if (!moved.defined()) result.no_box = old;
    return moved.defined() ? moved : old;
  };
  result.root = rewrite(
      root,
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        Ref<BufferLoad> inner = walk.descend(old);
        if (inner->buffer != layout.before()) return inner;
        BufferLoad moved = *inner;
        moved.buffer = layout.after();
        moved.indices = layout.indices(moved.indices, analyzer);
        return make<BufferLoad>(std::move(moved), old.span());
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        Ref<BufferStore> inner = walk.descend(old);
        if (inner->buffer != layout.before()) return inner;
        BufferStore moved = *inner;
        moved.buffer = layout.after();
        moved.indices = layout.indices(moved.indices, analyzer);
        return make<BufferStore>(std::move(moved), old.span());
      },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        for (const Ref<IterVar>& axis : old->iter_vars) analyzer.bind(axis->var, axis->dom);
        Block moved = *walk.descend(old);
        for (auto& read : moved.reads) read = region(read);
        for (auto& write : moved.writes) write = region(write);
        for (auto& own : moved.alloc_buffers) {
          if (own == layout.before()) own = layout.after();
        }
        return make<Block>(std::move(moved), old.span());
      });
  return result;
}

/// One element, without a mask.
template <class Access>
bool is_plain(const Access& access) {
  bool scalar = std::all_of(access.indices.begin(), access.indices.end(),
                            [](const Expr& index) { return index.dtype().is_scalar(); });
  return scalar && !access.predicate.defined();
}

/// Null when all is as P2 asks.
NodeRef other_use(const Ref<Block>& root, const Ref<Buffer>& buffer) {
  NodeRef found;
  visit(
      root,
      [&](const Ref<MatchBufferRegion>& match, Visitor& walk) {
        if (match->source->buffer == buffer) found = match;
        walk.descend(match);
      },
      [&](const Ref<Prefetch>& prefetch, Visitor& walk) {
        if (prefetch->region->buffer == buffer) found = prefetch;
        walk.descend(prefetch);
      },
      [&](const Ref<BufferLoad>& load, Visitor& walk) {
        if (load->buffer == buffer && !is_plain(*load)) found = load;
        walk.descend(load);
      },
      [&](const Ref<BufferStore>& store, Visitor& walk) {
        if (store->buffer == buffer && !is_plain(*store)) found = store;
        walk.descend(store);
      },
      [&](const Ref<Call>& call, Visitor& walk) {
        for (const auto& arg : call->args) {
          if (arg == buffer->data) found = call;
        }
        walk.descend(call);
      },
      [&](const Ref<DeclBuffer>& decl, Visitor& walk) {
        if (decl->buffer->data == buffer->data) found = decl;
        walk.descend(decl);
      });
  return found;
}

}  // namespace

Result<Plan> plan(const State& state, const TransformLayout& transform) {
  TW_TRY(block, state.find(transform.block));
  const Tree& tree = *block.tree;
  TransformLayout recorded = transform;
  auto regions = block.block().reads;
  auto& chosen = recorded.buffer;
  if (chosen.kind == "write") regions = block.block().writes;
  if (chosen.kind.empty()) {
    // A name or a buffer: among the writes first.
    auto position = buffer_position(chosen.index, block.block().writes, block, "write", "transform_layout/P1");
    chosen.kind = position.ok() ? "write" : "read";
    if (position.ok()) regions = block.block().writes;
  }
  TW_TRY(position, buffer_position(chosen.index, regions, block, chosen.kind, "transform_layout/P1"));
  chosen.index = position;
  const Ref<Buffer>& buffer = regions[position]->buffer;
  const IndexMap& map = *transform.index_map.map.as<IndexMap>();
  if (map.initial_indices.size() != buffer->shape.size()) {
    return refuse("transform_layout/P1",
                  "the index map takes " + std::to_string(map.initial_indices.size()) + " indices, but '" +
                      buffer->name + "' has " + std::to_string(buffer->shape.size()) + " dimensions",
                  {block.node()});
  }
  Ref<Block> root = tree.block_ref(tree.blocks().front());
  bool allocated = false;
  for (int at : tree.blocks()) {
    for (const Ref<Buffer>& own : tree.block_at(at).alloc_buffers) allocated |= own == buffer;
  }
  if (!allocated || !buffer->strides.empty() || !buffer->axis_separators.empty()) {
    return refuse("transform_layout/P2", "'" + buffer->name + "' is not a compact buffer that a block allocates",
                  {block.node()}, "transform a copy of it: sch.cache_read or sch.cache_write make one");
  }
  if (NodeRef use = other_use(root, buffer); use.defined()) {
    return refuse("transform_layout/P2", "'" + buffer->name + "' is used other than by plain loads and stores",
                  {use, block.node()});
  }
  Layout layout(buffer, map);
  TW_RETURN_IF_ERROR(layout.prepare(block, transform.assume_injective_transform));
  Rewritten after = rewrite_accesses(root, layout);
  if (after.no_box.defined()) {
    return refuse("transform_layout/P5",
                  "the images of " + analysis::brief(after.no_box) + " are not all elements of a box", {block.node()},
                  "transform the layout before regions of several elements arise");
  }
  Plan plan = give_loops(block.func, after.root, {});
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
