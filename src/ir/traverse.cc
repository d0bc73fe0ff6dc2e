#include "ir/traverse.h"

#include "ir/children.h"
#include "support/diagnostic.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

using detail::is_def;
using detail::is_handle;
template <class T>
constexpr Role role_of = is_def<T> ? Role::kDef : Role::kChild;

template <class T>
void read_children(const NodeBase* node, detail::ChildFn fn, void* context) {
  detail::read_children(static_cast<const NodeOf<T>*>(node)->data, [&](const NodeRef& child, auto is_def) {
    fn(context, child, is_def ? Role::kDef : Role::kChild);
  });
}

bool is_shared(const NodeRef& node) { return node.kind() == Kind::kBuffer || node.kind() == Kind::kAxis; }

// ---- replacing children

template <class T>
bool map_field(T& field, detail::MapFn fn, void* context);
template <class T>
bool map_field(std::vector<T>& field, detail::MapFn fn, void* context);
template <class A, class B>
bool map_field(std::pair<A, B>& field, detail::MapFn fn, void* context);
bool map_field(Annotations& field, detail::MapFn fn, void* context);

template <class T>
bool map_field(T& field, detail::MapFn fn, void* context) {
  if constexpr (is_handle<T>) {
    if (!field.defined()) return false;
    NodeRef result = fn(context, field, role_of<T>);
    if (result == field) return false;
    if constexpr (is_def<T>) {
      if (result.kind() != field.kind()) return false;  // a binding stays a binding
    } else if constexpr (!std::is_same_v<T, NodeRef>) {
      constexpr bool of_any_kind =
          std::is_same_v<T, Expr> || std::is_same_v<T, Stmt> || std::is_same_v<T, Type> || std::is_same_v<T, Func>;
      bool fits = !result.defined() || (of_any_kind ? result.sort() == field.sort() : result.kind() == field.kind());
      if (!fits) detail::wrong_replacement(field, result);
    }
    field = static_cast<T&>(result);
    return true;
  } else {
    return false;
  }
}
template <class T>
bool map_field(std::vector<T>& field, detail::MapFn fn, void* context) {
  bool changed = false;
  for (T& item : field) changed |= map_field(item, fn, context);
  return changed;
}
template <class A, class B>
bool map_field(std::pair<A, B>& field, detail::MapFn fn, void* context) {
  bool first = map_field(field.first, fn, context);
  return map_field(field.second, fn, context) || first;
}
bool map_field(Annotations& field, detail::MapFn fn, void* context) {
  bool changed = false;
  Annotations result;
  for (auto [key, value] : field.entries()) {
    changed |= map_field(value, fn, context);
    result.set(key, std::move(value));
  }
  if (changed) field = std::move(result);
  return changed;
}

template <class T>
NodeRef replace_children(const NodeRef& node, detail::MapFn fn, void* context) {
  T copy = *node.as<T>();
  bool changed = false;
  for_each_field(copy, [&](std::string_view, auto& field) { changed |= map_field(field, fn, context); });
  if (!changed) return node;
  return make(std::move(copy), node.span());
}

using Read = void (*)(const NodeBase*, detail::ChildFn, void*);
using Replace = NodeRef (*)(const NodeRef&, detail::MapFn, void*);
constexpr Read kRead[] = {
#define X(name, sort, ...) &read_children<name>,
#include "ir/kinds.def"
#undef X
};
constexpr Replace kReplace[] = {
#define X(name, sort, ...) &replace_children<name>,
#include "ir/kinds.def"
#undef X
};

}  // namespace

namespace detail {
void for_each_child(const NodeBase* node, ChildFn fn, void* context) {
  kRead[static_cast<int>(node->kind)](node, fn, context);
}
NodeRef map_children(const NodeRef& node, MapFn fn, void* context) {
  return kReplace[static_cast<int>(node.kind())](node, fn, context);
}

void wrong_replacement(const NodeRef& node, const NodeRef& result) {
  throw Exception(argument_error(
      "ir/replacement",
      "a " + kind_name(node.kind()) + " is replaced by a " + kind_name(result.kind()) + ", which cannot stand there",
      "give back a node of the same sort"));
}
}  // namespace detail

void Visitor::descend(const NodeRef& node) {
  if (is_shared(node) && !seen_.insert(node.get()).second) return;
  detail::for_each_child(
      node.get(),
      [](void* context, const NodeRef& child, Role role) {
        auto& self = *static_cast<Visitor*>(context);
        Role outer = std::exchange(self.role_, role);
        self.dispatch_(self, child);
        self.role_ = outer;
      },
      this);
}

NodeRef Rewriter::child(const NodeRef& node, Role role) {
  if (is_shared(node)) {
    if (auto* found = find_value(shared_, node)) return *found;
  }
  Role outer = std::exchange(role_, role);
  NodeRef result = dispatch_(*this, node);
  role_ = outer;
  if (is_shared(node)) shared_.emplace(node, result);
  return result;
}

NodeRef Rewriter::descend_any(const NodeRef& node) {
  return detail::map_children(
      node,
      [](void* context, const NodeRef& child_node, Role role) {
        return static_cast<Rewriter*>(context)->child(child_node, role);
      },
      this);
}

}  // namespace tilewright
