#include "ir/substitute.h"

#include <type_traits>
#include <unordered_set>
#include <utility>

#include "ir/build.h"
#include "ir/sizes.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

/// Arithmetic and loads whose buffers no variable of the map changes.
bool is_plain(const Expr& e, const VarMap& map) {
  if (e.is<Var>() || e.is<IntImm>() || e.is<FloatImm>()) return true;
  if (BinaryOperands operands = binary_operands(e)) return is_plain(*operands.a, map) && is_plain(*operands.b, map);
  const BufferLoad* load = e.as<BufferLoad>();
  if (!load || load->predicate.defined() || !load->buffer->strides.empty() || map.contains(load->buffer->data)) {
    return false;
  }
  auto is_number = [](const Expr& x) { return x.is<IntImm>(); };
  const Buffer& buffer = *load->buffer;
  return all_of(buffer.shape, is_number) && (!buffer.elem_offset.defined() || is_number(buffer.elem_offset)) &&
         all_of(load->indices, [&](const Expr& x) { return is_plain(x, map); });
}

/// Substitutes in plain expressions without a rewriter, which is slower.
Expr substituted_plainly(const Expr& e, const VarMap& map) {
  if (e.is<Var>()) {
    return find_value_or(map, e, e);
  }
  if (const BufferLoad* load = e.as<BufferLoad>()) {
    std::vector<Expr> indices;
    indices.reserve(load->indices.size());
    for (const Expr& index : load->indices) indices.push_back(substituted_plainly(index, map));
    return indices == load->indices ? e : make<BufferLoad>({load->buffer, std::move(indices), {}}, e.span());
  }
  BinaryOperands operands = binary_operands(e);
  if (!operands) return e;
  Expr a = substituted_plainly(*operands.a, map), b = substituted_plainly(*operands.b, map);
  if (a == *operands.a && b == *operands.b) return e;
  return make_binary(e.kind(), std::move(a), std::move(b), e.span());
}

template <class H>
H substitute_in(const H& root, const VarMap& map) {
  if (map.empty() || !root.defined()) return root;
  if constexpr (std::is_same_v<H, Expr>) {
    if (root.depth() <= kInlineDepth && is_plain(root, map)) return substituted_plainly(root, map);
  }
  return rewrite(root, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(map, v, v); });
}

/// Returns the size with constants folded, as the operators of scripts fold them.
Expr folded_size(const Expr& size) {
  if (const Cast* cast = size.as<Cast>()) {
    const Expr value = folded_size(cast->value);
    return value == cast->value ? size : tilewright::cast(cast->dtype, value);
  }
  if (!size.is<Add>() && !size.is<Sub>() && !size.is<Mul>() && !size.is<Min>() && !size.is<Max>()) return size;
  const BinaryOperands operands = binary_operands(size);
  const Expr made = binary(size.kind(), folded_size(*operands.a), folded_size(*operands.b));
  const BinaryOperands of = binary_operands(made);
  return made.kind() == size.kind() && *of.a == *operands.a && *of.b == *operands.b ? size : made;
}

/// Folds the sizes of axes and buffers. A script prints the lengths of axes only; the parser derives and folds the
/// number of positions and the shapes of arrays. Without folding here, the script would parse to a different function.
Ref<PrimFunc> with_folded_sizes(const Ref<PrimFunc>& func) {
  auto fold = [](Expr& size) {
    if (!size.defined()) return false;
    const Expr before = std::exchange(size, folded_size(size));
    return size != before;
  };
  return rewrite(
      func,
      [&](const Ref<Buffer>& buffer, Rewriter& walk) -> NodeRef {
        Ref<Buffer> after = walk.descend(buffer);
        Buffer folded = *after;
        bool changes = false;
        for (Expr& extent : folded.shape) changes |= fold(extent);
        return changes ? make(std::move(folded), buffer.span()) : after;
      },
      [&](const Ref<Axis>& axis, Rewriter& walk) -> NodeRef {
        Ref<Axis> after = walk.descend(axis);
        Axis folded = *after;
        bool changes = false;
        for (Expr* size : {&folded.length, &folded.nnz, &folded.nnz_cols}) changes |= fold(*size);
        return changes ? make(std::move(folded), axis.span()) : after;
      });
}

/// Variables and buffers that `root` defines. The data pointer of a buffer counts only if the buffer defines it.
struct Definitions {
  std::unordered_set<NodeRef> vars, buffers;
};

Definitions definitions_in(const NodeRef& root) {
  Definitions definitions;
  visit(
      root,
      [&](const Ref<Var>& v, Visitor& walk) {
        if (walk.role() == Role::kDef) definitions.vars.insert(v);
      },
      [&](const Ref<DeclBuffer>& decl, Visitor& walk) {
        definitions.buffers.insert(decl->buffer);  // the data pointer is somebody else's
        walk(decl->body);
      },
      [&](const Ref<Buffer>& buffer, Visitor& walk) {
        if (walk.role() != Role::kDef) return;
        definitions.buffers.insert(buffer);
        walk.descend(buffer);
      });
  return definitions;
}

/// The sizes that buffers define which functions and blocks in `root` match, where nothing before has defined them.
/// Seen from inside, a variable that is used anywhere else in `root` is taken to be one from outside.
class Sizes {
 public:
  Sizes(const NodeRef& root, const std::unordered_set<NodeRef>& vars) : vars_(vars) {
    visit(
        root,
        [&](const Ref<Var>& v, Visitor&) {
          if (!vars_.count(v) && !open_.count(v)) outside_.insert(v);
        },
        [&](const Ref<PrimFunc>& func, Visitor& walk) {
          scoped([&] {
            for (const auto& [param, buffer] : func->buffer_map) define(*buffer);
            walk.descend(func);
          });
        },
        [&](const Ref<Block>& block, Visitor& walk) { scoped([&] { walk.descend(block); }); },
        [&](const Ref<MatchBufferRegion>& match, Visitor& walk) {
          walk(match->source);
          define(*match->buffer);
          walk.descend(match);
        });
    for (const NodeRef& v : outside_) sizes_.erase(v);
  }
  const std::unordered_set<NodeRef>& get() const { return sizes_; }

 private:
  void define(const Buffer& buffer) {
    for_each_size(buffer, [&](const Size& size) {
      if (vars_.count(size.var) || outside_.count(size.var) || !open_.insert(size.var).second) return;
      order_.push_back(size.var);
      sizes_.insert(size.var);
    });
  }
  template <class F>
  void scoped(F&& inside) {
    size_t known = order_.size();
    inside();
    for (; order_.size() > known; order_.pop_back()) open_.erase(order_.back());
  }

  const std::unordered_set<NodeRef>& vars_;
  std::unordered_set<NodeRef> open_, outside_, sizes_;
  std::vector<NodeRef> order_;  ///< order of the open ones
};

template <class H>
H renew(const H& root) {
  Definitions defined = definitions_in(root);
  std::unordered_map<NodeRef, Expr> fresh;
  auto rename = [&](const NodeRef& v) { fresh.emplace(v, make<Var>(*v.as<Var>(), v.span())); };
  for (const NodeRef& v : defined.vars) rename(v);
  Sizes sizes(root, defined.vars);
  for (const NodeRef& v : sizes.get()) rename(v);
  return rewrite(
      root, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(fresh, v, v); },
      [&](const Ref<Buffer>& buffer, Rewriter& r) -> NodeRef {
        Ref<Buffer> after = r.descend(buffer);
        bool needs_copy = after == buffer && defined.buffers.count(buffer);
        return needs_copy ? make<Buffer>(*buffer, buffer.span()) : after;
      },
      [&](const Ref<Block>& block, Rewriter& r) -> Stmt { return with_field(r.descend(block), &Block::id, {}); });
}

}  // namespace

Expr substitute(const Expr& root, const VarMap& map) { return substitute_in(root, map); }
Stmt substitute(const Stmt& root, const VarMap& map) { return substitute_in(root, map); }
Ref<PrimFunc> substitute(const Ref<PrimFunc>& root, const VarMap& map) {
  Ref<PrimFunc> result = substitute_in(root, map);
  return result == root || result->axes.empty() ? result : with_folded_sizes(result);
}
Ref<Block> substitute(const Ref<Block>& root, const VarMap& map) { return substitute_in(root, map); }
Ref<BufferRegion> substitute(const Ref<BufferRegion>& root, const VarMap& map) { return substitute_in(root, map); }

Stmt renew_defs(const Stmt& root) { return renew(root); }
Ref<PrimFunc> renew_defs(const Ref<PrimFunc>& root) { return renew(root); }

void for_each_free_var(const NodeRef& root, const std::function<void(const Ref<Var>&)>& use) {
  Definitions defined = definitions_in(root);
  visit(root, [&](const Ref<Var>& v) {
    if (!defined.vars.count(v)) use(v);
  });
}

namespace {

/// Largest depth of index arithmetic that is walked by plain recursion.
constexpr uint32_t kShallow = 64;

/// Shallow index arithmetic is looked through without a visitor: most questions are about that.
template <class IsOne>
bool mentions(const NodeRef& node, const IsOne& is_one) {
  switch (node.kind()) {
    case Kind::kVar:
      return is_one(node.borrow<Var>());
    case Kind::kIntImm:
      return false;
    default:
      break;
  }
  if (node.depth() <= kShallow) {
    if (const auto [a, b] = binary_operands(static_cast<const Expr&>(node)); a) {
      return mentions(*a, is_one) || mentions(*b, is_one);
    }
  }
  return any_node(node, [&](const Ref<Var>& v) { return is_one(v); });
}

}  // namespace

bool uses_any_var(const NodeRef& root, const std::function<bool(const Ref<Var>&)>& is_one) {
  return root.defined() && mentions(root, is_one);
}

bool uses_var(const NodeRef& root, const NodeRef& variable) {
  return root.defined() && mentions(root, [&](const Ref<Var>& v) { return v == variable; });
}

Stmt replace_buffers(const Stmt& root, const std::unordered_map<NodeRef, Ref<Buffer>>& map) {
  return rewrite(root, [&](const Ref<Buffer>& buffer, Rewriter& r) -> NodeRef {
    auto it = map.find(buffer);
    return it == map.end() ? NodeRef(r.descend(buffer)) : NodeRef(it->second);
  });
}

}  // namespace tilewright
