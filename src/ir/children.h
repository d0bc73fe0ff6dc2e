// Enumerates the children of a node whose kind is known at compile time, from the types of its fields. All other code
// uses ir/traverse.h, which is built on this file.
#pragma once

#include "ir/stmt.h"

namespace tilewright::detail {

template <class T>
constexpr bool is_handle = std::is_base_of_v<NodeRef, T>;
template <class T>
constexpr bool is_def = false;
template <class T>
constexpr bool is_def<Def<T>> = true;

// Declared first: each overload calls the others.
template <class T, class F>
void read_field(const T& field, F& fn);
template <class T, class F>
void read_field(const std::vector<T>& field, F& fn);
template <class A, class B, class F>
void read_field(const std::pair<A, B>& field, F& fn);
template <class F>
void read_field(const Annotations& field, F& fn);

template <class T, class F>
void read_field(const T& field, F& fn) {
  if constexpr (is_handle<T>) {
    if (field.defined()) fn(field, std::bool_constant<is_def<T>>());
  }  // anything else is data
}
template <class T, class F>
void read_field(const std::vector<T>& field, F& fn) {
  for (const T& item : field) read_field(item, fn);
}
template <class A, class B, class F>
void read_field(const std::pair<A, B>& field, F& fn) {
  read_field(field.first, fn);
  read_field(field.second, fn);
}
template <class F>
void read_field(const Annotations& field, F& fn) {
  for (const auto& entry : field.entries()) read_field(entry.second, fn);
}

/// Calls fn(child, is_def) for each non-null child, in order of Members.
template <class T, class F>
void read_children(const T& node, F&& fn) {
  static_assert(count_fields<T>() == T::Members::count, "a field is missing in Members");
  for_each_field(node, [&](std::string_view, const auto& field) { read_field(field, fn); });
}

}  // namespace tilewright::detail
