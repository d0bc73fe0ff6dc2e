// Records and databases as Python sees them.
#pragma once

#include "python/module.h"
#include "search/database/database.h"

namespace tilewright::python {

/// The hash that 32 hexadecimal digits spell.
Hash128 hash_from_hex(const std::string& text);

Bind bind_database;

}  // namespace tilewright::python

namespace nanobind::detail {

/// Hexadecimal digits in Python.
template <>
struct type_caster<tilewright::Hash128> {
  using Value = tilewright::Hash128;
  static constexpr auto Name = const_name("str");
  template <class T>
  using Cast = tilewright::Hash128;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    text = source;
    return PyUnicode_Check(source.ptr());
  }
  static handle from_cpp(const tilewright::Hash128& hash, rv_policy, cleanup_list*) noexcept {
    const std::string text = hash.hex();
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  }
  explicit operator tilewright::Hash128() { return tilewright::python::hash_from_hex(PyUnicode_AsUTF8(text.ptr())); }
  handle text;
};

}  // namespace nanobind::detail
