// Conversion of the fields of IR structs between C++ and Python, derived from their field lists (ir/fields.h).
#pragma once

#include <string>

#include "python/node_caster.h"

namespace tilewright::python {

// ---- fields as attributes: lists become tuples, maps dicts

template <class F>
nb::object field_to_python(const F& field) {
  return nb::cast(field);
}
template <class F>
nb::object field_to_python(const std::vector<F>& field) {
  nb::list items;
  for (const F& item : field) items.append(field_to_python(item));
  return nb::tuple(items);
}
template <class A, class B>
nb::object field_to_python(const std::vector<std::pair<A, B>>& field) {
  nb::dict items;
  for (const auto& [key, value] : field) items[nb::cast(key)] = nb::cast(value);
  return items;
}
inline nb::object field_to_python(const Identity& field) { return nb::int_(field.value); }

// ---- arguments of constructors as fields

template <class F>
struct Argument {
  using type = F;
  static F from_python(F&& value) { return std::move(value); }
};
template <class A, class B>
struct Argument<std::vector<std::pair<A, B>>> {
  using type = nb::dict;
  static std::vector<std::pair<A, B>> from_python(nb::dict&& value) {
    std::vector<std::pair<A, B>> result;
    for (auto [key, item] : value) result.emplace_back(nb::cast<A>(key), nb::cast<B>(item));
    return result;
  }
};
template <>
struct Argument<Identity> {
  using type = uint64_t;
  static Identity from_python(uint64_t value) { return {value}; }
};

template <auto M>
struct MemberType;
template <class C, class F, F C::* M>
struct MemberType<M> {
  using type = F;
};

/// Conversion of one field, both ways. Specialized for raw bytes, which become `bytes` (not `str`).
template <auto M>
struct FieldConversion : Argument<typename MemberType<M>::type> {
  static nb::object to_python(const typename MemberType<M>::type& field) { return field_to_python(field); }
};

/// Adds a method to the Python class of node type T.
template <class T, class Function, class... Extra>
void add_method(const char* method, Function function, const Extra&... extra) {
  auto cls = nb::borrow<nb::object>(nb::type<NodeOf<T>>());
  nb::setattr(cls, method, nb::cpp_function(function, nb::name(method), nb::is_method(), nb::scope(cls), extra...));
}

template <auto M>
const char* field_name() {
  static const std::string kName(detail::kMemberName<M>);
  return kName.c_str();
}

/// Returns a dict from field name to value.
template <class T>
nb::dict fields_to_dict(const T& value) {
  nb::dict result;
  for_each_field(value, [&](std::string_view name, const auto& field) { result[nb::cast(name)] = nb::cast(field); });
  return result;
}

}  // namespace tilewright::python
