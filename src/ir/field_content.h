// Checks of the fields of stored nodes that the readers of all formats share.
#pragma once

#include <string>

#include "ir/stmt.h"

namespace tilewright {

/// Thrown and caught by readers: what is wrong with what they read.
struct BadContent {
  std::string what;
};

namespace detail {

inline ForKind last_of(ForKind) { return ForKind::kThreadBinding; }
inline IterType last_of(IterType) { return IterType::kTensorized; }
inline BufferKind last_of(BufferKind) { return BufferKind::kAutoBroadcast; }

/// The value of an enumeration that has this number.
template <class E>
E enumerator(int64_t number) {
  if (number >= 0 && number <= static_cast<int64_t>(last_of(E{}))) return static_cast<E>(number);
  throw BadContent{"enumeration value " + std::to_string(number) + " is out of range"};
}

[[noreturn]] inline void mismatch(std::string_view wanted, const NodeRef& node) {
  throw BadContent{"expected " + std::string(wanted) + ", found " + kind_name(node.kind())};
}
template <class T>
void check_sort(const Ref<T>&, const NodeRef& node) {
  if (!node.is<T>()) mismatch(kind_name(KindOf<T>::kind), node);
}
inline void check_sort(const Expr&, const NodeRef& node) {
  if (node.sort() != Sort::kExpr) mismatch("an expression", node);
}
inline void check_sort(const Stmt&, const NodeRef& node) {
  if (node.sort() != Sort::kStmt) mismatch("a statement", node);
}
inline void check_sort(const Type&, const NodeRef& node) {
  if (node.sort() != Sort::kType) mismatch("a type", node);
}
inline void check_sort(const Func&, const NodeRef& node) {
  if (node.sort() != Sort::kFunc) mismatch("a function", node);
}
inline void check_sort(const NodeRef&, const NodeRef&) {}

}  // namespace detail
}  // namespace tilewright
