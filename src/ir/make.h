// The only way to build a node.
#pragma once

#include <type_traits>
#include <utility>

#include "ir/stmt.h"

namespace tilewright {

/// Checks the types of the fields, derives dtype and depth, stamps the current span (or `span`).
/// Throws Exception (ScriptError "ir/...") when operands do not fit or the tree gets deeper than kMaxDepth.
/// Operands must already have equal types; ir/build.h has the operators that promote.
template <class T>
Ref<T> make(T data, SpanId span = 0);

#define X(name, sort, ...) extern template Ref<name> make<name>(name, SpanId);
#include "ir/kinds.def"
#undef X

/// Returns a copy of the node with one field changed: with_field(loop, &For::kind, ForKind::kSerial).
template <class T, class Field>
Ref<T> with_field(const Ref<T>& node, Field T::* field, std::type_identity_t<Field> value) {
  T copy = *node;
  copy.*field = std::move(value);
  return make<T>(std::move(copy), node.span());
}

/// Returns a copy of the node with another body; the node itself if the body is the same.
template <class T>
Ref<T> with_body(const Ref<T>& node, Stmt body) {
  return body == node->body ? node : with_field(node, &T::body, std::move(body));
}

}  // namespace tilewright
