// visit and rewrite: the only traversal mechanism. A lambda's first parameter selects its kind of node.
//
//   visit(stmt, [&](const Ref<BufferLoad>& load) { ... });              // called before the children, which follow
//   visit(stmt, [&](const Ref<For>& loop) { ...; });   // visits the children itself
//   Stmt after = rewrite(stmt, [&](const Ref<Var>& v, Rewriter&) -> Expr { ... },
//                        [&](const Ref<For>& loop, Rewriter& r) -> Stmt { Stmt s = r.descend(loop); ... });
//   visit(e, on<FloorDiv, FloorMod>([&](const auto& division) { ... division->b ... }));      // nodes of several kinds
//
// Order: children in the order of Members. References are borrowed: no counts are touched. A subtree without a change
// comes back as the same pointer. Any depth that make() allows is safe.
//
// Buffers: a Buffer is entered once per traversal however often it is used (data, shape, strides, offset), and a
// rewrite replaces all its uses by the same new Buffer; so it is with an Axis. Variables at binding sites are passed to
// the lambda for Var too: returning another Var renames, returning any other expression keeps the binding. `role()`
// says which case applies.
#pragma once

#include <array>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "ir/make.h"
#include "support/deep_stack.h"

namespace tilewright {

enum class Role : uint8_t {
  kChild,  ///< owned by the node: a nested expression or statement, a use of a variable or of a buffer
  kDef,    ///< a binding site: Def<Var>, Def<Buffer>
};

namespace detail {
/// Calls fn(context, child, role) for each non-null child, in order of Members.
using ChildFn = void (*)(void* context, const NodeRef& child, Role role);
void for_each_child(const NodeBase* node, ChildFn fn, void* context);
/// fn returns the replacement. Null children stay null. Bindings stay as they are where the replacement is no variable;
/// anything else that does not fit its place is an error (ir/replacement).
using MapFn = NodeRef (*)(void* context, const NodeRef& child, Role role);
NodeRef map_children(const NodeRef& node, MapFn fn, void* context);
[[noreturn]] void wrong_replacement(const NodeRef& node, const NodeRef& result);
}  // namespace detail

/// for_each_child with a lambda (const NodeRef&, Role).
template <class F>
void for_each_child(const NodeRef& node, F&& f) {
  detail::for_each_child(
      node.get(),
      [](void* context, const NodeRef& child, Role role) {
        (*static_cast<std::remove_reference_t<F>*>(context))(child, role);
      },
      const_cast<void*>(static_cast<const void*>(&f)));
}

class Visitor {
 public:
  void operator()(const NodeRef& node) {
    if (node.defined()) dispatch_(*this, node);
  }
  /// Visits the children.
  void descend(const NodeRef& node);
  /// Whether the parent uses the visited node or binds it.
  Role role() const { return role_; }

 protected:
  using Dispatch = void (*)(Visitor&, const NodeRef&);
  explicit Visitor(Dispatch dispatch) : dispatch_(dispatch) {}
  Dispatch dispatch_;
  Role role_ = Role::kChild;
  std::unordered_set<const NodeBase*> seen_;
};

class Rewriter {
 public:
  Expr operator()(const Expr& node) { return Expr(any(node)); }
  Stmt operator()(const Stmt& node) { return Stmt(any(node)); }
  NodeRef any(const NodeRef& node) { return node.defined() ? dispatch_(*this, node) : node; }
  template <class T>
  Ref<T> typed(const Ref<T>& node) {
    NodeRef result = any(node);
    if (result.defined() && !result.is<T>()) detail::wrong_replacement(node, result);
    return result.borrow<T>();
  }
  /// Rebuilds the node from rewritten children: of the same kind, or the same pointer when nothing changed.
  template <class T>
  Ref<T> descend(const Ref<T>& node) {
    return descend_any(node).template borrow<T>();
  }
  NodeRef descend_any(const NodeRef& node);
  Role role() const { return role_; }

 protected:
  using Dispatch = NodeRef (*)(Rewriter&, const NodeRef&);
  explicit Rewriter(Dispatch dispatch) : dispatch_(dispatch) {}
  Dispatch dispatch_;
  Role role_ = Role::kChild;

 private:
  NodeRef child(const NodeRef& node, Role role);
  std::unordered_map<NodeRef, NodeRef> shared_;
};

namespace detail {
template <class... T>
struct Kinds {};
}  // namespace detail

/// A function for nodes of several kinds.
template <class F, class... T>
struct OnKinds : F {};
template <class... T, class F>
OnKinds<F, T...> on(F function, detail::Kinds<T...> = {}) {
  return {std::move(function)};
}

namespace detail {

/// The kinds of node that a lambda is for.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class C, class R, class T, class... V>
struct Signature<R (C::*)(const Ref<T>&, V&...) const> {
  using Nodes = Kinds<T>;
};
template <class C, class R, class T, class... V>
struct Signature<R (C::*)(const Ref<T>&, V&...)> : Signature<R (C::*)(const Ref<T>&, V&...) const> {};
template <class F, class... T>
struct Signature<OnKinds<F, T...>> {
  using Nodes = Kinds<T...>;
};

/// A Visitor or a Rewriter that calls the lambda for a node's kind.
template <class Walk, class... F>
class LambdaWalk final : public Walk {
 public:
  explicit LambdaWalk(std::tuple<F&...> lambdas) : Walk(&dispatch), lambdas_(lambdas) {}

 private:
  static constexpr bool kRewrites = std::is_same_v<Walk, Rewriter>;
  using Result = std::conditional_t<kRewrites, NodeRef, void>;
  using Call = Result (*)(LambdaWalk&, const NodeRef&);
  template <size_t I, class T>
  static Result call(LambdaWalk& self, const NodeRef& node) {
    auto& lambda = std::get<I>(self.lambdas_);
    const Ref<T>& typed = node.borrow<T>();
    if constexpr (kRewrites) {
      return NodeRef(lambda(typed, static_cast<Walk&>(self)));
    } else if constexpr (std::is_invocable_v<decltype(lambda), const Ref<T>&, Walk&>) {
      lambda(typed, static_cast<Walk&>(self));
    } else {
      lambda(typed);
      self.descend(node);
    }
  }
  using Table = std::array<Call, kNumKinds>;
  template <size_t I, class... T>
  static constexpr void fill(Table& table, Kinds<T...>) {
    ((table[static_cast<int>(KindOf<T>::kind)] = &LambdaWalk::template call<I, T>), ...);
  }
  static constexpr Table kTable = [] {
    Table table{};
    [&]<size_t... I>(std::index_sequence<I...>) {
      (fill<I>(table, typename Signature<F>::Nodes()), ...);
    }(std::index_sequence_for<F...>{});
    return table;
  }();
  static Result dispatch(Walk& base, const NodeRef& node) {
    auto& self = static_cast<LambdaWalk&>(base);
    if (Call call = kTable[static_cast<int>(node.kind())]) return call(self, node);
    if constexpr (kRewrites) {
      return self.descend_any(node);
    } else {
      self.descend(node);
    }
  }
  std::tuple<F&...> lambdas_;
};

}  // namespace detail

template <class... F>
void visit(const NodeRef& root, F&&... lambdas) {
  with_stack_for(root.depth(), [&] {
    detail::LambdaWalk<Visitor, std::remove_cvref_t<F>...> visitor(std::tie(lambdas...));
    visitor(root);
  });
}

/// Whether one of the predicates holds for a node of the tree: any_node(body, [](const Ref<For>& loop) { ... }).
template <class... F>
bool any_node(const NodeRef& root, F&&... holds) {
  bool found = false;
  auto look = [&](const auto& predicate) {
    return [&](const auto& node, Visitor& v) {
      found = found || predicate(node);
      if (!found) v.descend(node);
    };
  };
  visit(root, on(look(holds), typename detail::Signature<std::remove_cvref_t<F>>::Nodes())...);
  return found;
}

/// Whether the tree has a node of one of the kinds.
template <class... T>
bool has_node(const NodeRef& root) {
  return any_node(root, [](const Ref<T>&) { return true; }...);
}

/// The sort is kept: an Expr gives an Expr, a Ref<Block> gives a Ref<Block> if the lambdas keep the kind.
template <class H, class... F>
H rewrite(const H& root, F&&... lambdas) {
  H result;
  with_stack_for(root.depth(), [&] {
    detail::LambdaWalk<Rewriter, std::remove_cvref_t<F>...> rewriter(std::tie(lambdas...));
    NodeRef rewritten = rewriter.any(root);
    result = static_cast<const H&>(rewritten);
  });
  return result;
}

}  // namespace tilewright
