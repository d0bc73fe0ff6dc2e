// A nanobind caster for arguments that may be Python numbers, whose IR type depends on the other operand
// (ir/literal.h).
#pragma once

#include "ir/literal.h"
#include "python/node_caster.h"

namespace tilewright::python {

/// Converts a node, a number with all its digits, or None. Returns false for other objects. Never throws.
bool operand_from_python(nb::handle object, Operand& operand) noexcept;

}  // namespace tilewright::python

namespace nanobind::detail {

template <>
struct type_caster<tilewright::Operand> {
  static constexpr bool IsClass = true;
  static constexpr auto Name = const_name("tilewright.ir.ExprLike");
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    return tilewright::python::operand_from_python(source, value);
  }
  explicit operator tilewright::Operand*() { return &value; }
  explicit operator tilewright::Operand&() { return value; }
  explicit operator tilewright::Operand&&() { return std::move(value); }
  tilewright::Operand value;
};

}  // namespace nanobind::detail
