#include "analysis/shrink.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/build.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// Classes of linked sizes (union-find), each with its size; those that may not change are pinned.
class Classes {
 public:
  /// The class of a variable of a loop or an axis, or of a dimension of a buffer.
  size_t of(const NodeRef& owner, size_t dimension = 0) {
    auto [it, is_new] = numbers_.emplace(std::pair(owner.get(), dimension), parents_.size());
    if (is_new) {
      parents_.push_back(parents_.size());
      sizes_.push_back(std::nullopt);
      pinned_.push_back(false);
    }
    return root(it->second);
  }
  bool knows(const NodeRef& owner) const { return numbers_.contains({owner.get(), 0}); }

  /// One of the class has this size; null or anything but a constant pins it.
  void set_size(size_t at, const Expr& size) {
    const std::optional<int64_t> value = size.defined() ? const_int(size) : std::nullopt;
    if (!value || (sizes_[at] && sizes_[at] != value)) pinned_[at] = true;
    if (!sizes_[at]) sizes_[at] = value;
  }
  void pin(size_t at) { pinned_[at] = true; }

  void link(size_t a, size_t b) {
    if (a == b) return;
    if (sizes_[a] != sizes_[b]) {  // a part of a dimension, say
      pin(a);
      pin(b);
    }
    parents_[a] = b;
    pinned_[b] = pinned_[b] || pinned_[a];
  }

  /// Sizes that are only those of classes that scale, above the limit.
  std::set<int64_t> large_sizes(int64_t limit) {
    std::set<int64_t> found;
    for (size_t at : indices_of(parents_)) {
      if (root(at) == at && !pinned_[at] && sizes_[at] && *sizes_[at] > limit) found.insert(*sizes_[at]);
    }
    return found;
  }
  std::set<int64_t> all_sizes() const {
    std::set<int64_t> found;
    for (const std::optional<int64_t>& size : sizes_) {
      if (size) found.insert(*size);
    }
    return found;
  }
  /// Returns the size of a class; nothing for classes that keep their size.
  std::optional<int64_t> scalable_size(size_t at) const { return pinned_[at] ? std::nullopt : sizes_[at]; }

 private:
  size_t root(size_t at) {
    while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
    return at;
  }

  std::map<std::pair<const NodeBase*, size_t>, size_t> numbers_;
  std::vector<size_t> parents_;
  std::vector<std::optional<int64_t>> sizes_;
  std::vector<bool> pinned_;
};

/// Links what is linked and pins what else uses a variable.
class Linker {
 public:
  explicit Linker(Classes& classes) : classes_(classes) {}

  /// False: the function holds something that no theorem is stated about.
  bool run(const Ref<PrimFunc>& func) {
    for (const auto& [param, buffer] : func->buffer_map) define(buffer);
    visit(
        func->body, on<For, BlockRealize>([&](const auto& node, Visitor& v) { enter(node, v); }),
        [&](const Ref<BufferStore>& store, Visitor& v) {
          access(store->buffer, store->indices, v);
          v(store->value);
          v(store->predicate);
        },
        [&](const Ref<BufferLoad>& load, Visitor& v) { access(load->buffer, load->indices, v); },
        [&](const Ref<Var>& var, Visitor&) { pin(var); },
        on<DeclBuffer, Allocate, AllocateConst, BufferRealize, AttrStmt>(
            [&](const auto&, Visitor&) { understood_ = false; }));
    return understood_;
  }

 private:
  void define(const Ref<Buffer>& buffer) {
    const bool plain =
        buffer->strides.empty() && (!buffer->elem_offset.defined() || is_const_int(buffer->elem_offset, 0));
    for (size_t d : indices_of(buffer->shape)) {
      const size_t at = classes_.of(buffer, d);
      classes_.set_size(at, buffer->shape[d]);
      if (!plain) classes_.pin(at);
    }
  }

  void enter(const Ref<For>& loop, Visitor& v) {
    v(loop->min);
    v(loop->extent);
    const size_t at = classes_.of(loop->loop_var);
    classes_.set_size(at, loop->extent);
    if (!is_const_int(loop->min, 0) || loop->kind == ForKind::kThreadBinding) classes_.pin(at);
    v(loop->body);
  }

  void enter(const Ref<BlockRealize>& realize, Visitor& v) {
    const Ref<Block>& block = realize->block;
    understood_ = understood_ && block->match_buffers.empty();
    for (const Def<Buffer>& buffer : block->alloc_buffers) define(buffer);
    v(realize->predicate);
    for (size_t i : indices_of(block->iter_vars)) {
      const Ref<IterVar>& axis = block->iter_vars[i];
      v(axis->dom->min);
      v(axis->dom->extent);
      const size_t at = classes_.of(axis->var);
      classes_.set_size(at, axis->dom->extent);
      if (!is_const_int(axis->dom->min, 0)) classes_.pin(at);
      tie(realize->iter_values[i], at, v);
    }
    // Regions that are declared: those of single elements are tied like accesses, whole dimensions scale with them.
    for (const auto* regions : {&block->reads, &block->writes}) {
      for (const Ref<BufferRegion>& region : *regions) {
        for (size_t d : indices_of(region->region)) {
          const Ref<Range>& range = region->region[d];
          const size_t at = classes_.of(region->buffer, d);
          if (is_const_int(range->extent, 1)) {
            tie(range->min, at, v);
          } else if (!is_const_int(range->min, 0) || const_int(range->extent) != const_int(region->buffer->shape[d])) {
            classes_.pin(at);
            v(range->min);
            v(range->extent);
          }
        }
      }
    }
    v(block->init);
    v(block->body);
  }

  void access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, Visitor& v) {
    for (size_t d : indices_of(indices)) tie(indices[d], classes_.of(buffer, d), v);
  }

  /// The expression runs over what the class is the size of.
  void tie(const Expr& e, size_t at, Visitor& v) {
    if (e.is<Var>() && classes_.knows(e)) {
      classes_.link(classes_.of(e), at);
    } else {
      classes_.pin(at);
      v(e);
    }
  }

  void pin(const NodeRef& var) {
    if (classes_.knows(var)) classes_.pin(classes_.of(var));
  }

  Classes& classes_;
  bool understood_ = true;
};

/// Odd sizes, so that tails of tiles are reached; never one that something else has.
std::map<int64_t, int64_t> small_sizes(const std::set<int64_t>& large, std::set<int64_t> taken, int64_t limit) {
  std::map<int64_t, int64_t> sizes;
  int64_t next = std::max<int64_t>(limit / 2, 2);
  for (int64_t size : large) {
    do {
      next += next % 2 ? 2 : 1;
    } while (taken.contains(next));
    sizes[size] = std::min(next, size);
  }
  return sizes;
}

}  // namespace

Ref<PrimFunc> shrink(const Ref<PrimFunc>& func, int64_t limit) {
  Classes classes;
  if (!Linker(classes).run(func)) return func;
  const std::map<int64_t, int64_t> sizes = small_sizes(classes.large_sizes(limit), classes.all_sizes(), limit);
  if (sizes.empty()) return func;
  auto resized = [&](const Expr& size, const NodeRef& owner, size_t dimension = 0) -> Expr {
    const std::optional<int64_t> value = classes.scalable_size(classes.of(owner, dimension));
    auto* small = value ? find_value(sizes, *value) : nullptr;
    return small ? Expr(constant(size.dtype(), *small)) : size;
  };
  return rewrite(
      func,
      [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef {
        Buffer copy = *buffer;
        for (size_t d : indices_of(copy.shape)) copy.shape[d] = resized(copy.shape[d], buffer, d);
        return copy.shape == buffer->shape ? NodeRef(buffer) : NodeRef(make(std::move(copy), buffer.span()));
      },
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        return with_field(r.descend(loop), &For::extent, resized(loop->extent, loop->loop_var));
      },
      [&](const Ref<IterVar>& axis, Rewriter&) -> NodeRef {
        IterVar copy = *axis;
        if (copy.dom.defined()) copy.dom = range(copy.dom->min, resized(copy.dom->extent, axis->var));
        return make(std::move(copy), axis.span());
      },
      [&](const Ref<BufferRegion>& region, Rewriter& r) -> NodeRef {
        BufferRegion copy = *r.descend(region);
        for (size_t d : indices_of(copy.region)) {
          const Ref<Range>& whole = region->region[d];
          if (is_const_int(whole->extent, 1)) continue;
          copy.region[d] = range(whole->min, resized(whole->extent, region->buffer, d));
        }
        return make(std::move(copy), region.span());
      });
}

}  // namespace tilewright::analysis
