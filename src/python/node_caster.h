// IR handles across the boundary. A Python object holds one count of its node; C++ never holds a Python object, so
// copying handles needs no GIL (nanobind's own intrusive base would: docs/decisions).
//
// Where an Expr is expected, Python's bool, int, float, str and NumPy scalars convert to constants; where a Type is
// expected, the name of a dtype does. Annotations are dicts of plain Python values and nodes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "ir/build.h"
#include "ir/literal.h"
#include "support/diagnostic.h"
#include "support/result.h"

namespace tilewright::python {

namespace nb = nanobind;

/// Lists and dicts of Python inside of each other: one that holds itself has no end.
inline constexpr int kMostNesting = 48;

/// A constant for a Python number or string; null when the object is neither. Never throws.
NodeRef constant_from_python(nb::handle object) noexcept;
/// Any annotation value: constants, lists, dicts, nodes. Throws nb::type_error for anything else.
NodeRef value_from_python(nb::handle object);
/// Plain Python where that loses nothing (str, bool, int32, float32, List, Dict), else the node.
nb::object value_to_python(const NodeRef& value);
/// The node's Python object, or None.
nb::object node_to_python(const NodeRef& node);

template <class T>
T unwrap(Result<T> result) {
  return std::move(result).value_or_throw();
}
inline void unwrap_status(Status status) {
  if (!status.ok()) throw Exception(std::move(status.error()));
}

}  // namespace tilewright::python

namespace nanobind::detail {

handle put_node(const tilewright::NodeBase* node, cleanup_list* cleanup) noexcept;
/// The node behind a Python object, borrowed; null if it is none.
const tilewright::NodeBase* get_node(handle source, uint32_t flags, cleanup_list* cleanup) noexcept;

/// Converts a node where an expression is expected: an iteration variable becomes its variable.
inline tilewright::NodeRef as_expression(tilewright::NodeRef node) {
  if (const auto* axis = node.as<tilewright::IterVar>()) return axis->var;
  return node;
}

template <class Handle, bool (*Accept)(const tilewright::NodeRef&), bool Constants, bool TypeNames>
struct node_caster {
  static constexpr bool IsClass = true;
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    if (source.is_none()) {
      value = Handle();
      return true;
    }
    tilewright::NodeRef node(get_node(source, flags, cleanup));
    if constexpr (Constants) {
      if (!node.defined()) node = tilewright::python::constant_from_python(source);
    }
    if constexpr (TypeNames) {
      if (!node.defined() && PyUnicode_Check(source.ptr())) {
        const char* name = PyUnicode_AsUTF8(source.ptr());
        if (!name) PyErr_Clear();  // halves of characters (lone surrogates)
        if (auto type = tilewright::DataType::parse(name ? name : "")) {
          node = tilewright::make<tilewright::PrimType>({*type});
        }
      }
    }
    if constexpr (std::is_same_v<Handle, tilewright::Expr>) node = as_expression(std::move(node));
    if constexpr (Constants) {
      try {
        node = tilewright::settle(std::move(node));
      } catch (const tilewright::Exception&) {
        return false;  // no type holds the number: the error for arguments that do not fit says so
      }
    }
    if (!node.defined() || !Accept(node)) return false;
    value = static_cast<const Handle&>(node);
    return true;
  }
  static handle from_cpp(const Handle& node, rv_policy, cleanup_list* cleanup) noexcept {
    return put_node(node.get(), cleanup);
  }

  explicit operator Handle*() { return &value; }
  explicit operator Handle&() { return value; }
  explicit operator Handle&&() { return std::move(value); }
  Handle value;
};

inline bool accept_any(const tilewright::NodeRef&) { return true; }
template <tilewright::Sort S>
bool accept_sort(const tilewright::NodeRef& node) {
  return node.sort() == S;
}
template <class T>
bool accept_kind(const tilewright::NodeRef& node) {
  return node.is<T>();
}

template <>
struct type_caster<tilewright::NodeRef> : node_caster<tilewright::NodeRef, accept_any, true, false> {
  static constexpr auto Name = const_name("tilewright.ir.Node | None");
};
template <>
struct type_caster<tilewright::Expr>
    : node_caster<tilewright::Expr, accept_sort<tilewright::Sort::kExpr>, true, false> {
  static constexpr auto Name = const_name("tilewright.ir.ExprLike");
};
template <>
struct type_caster<tilewright::Stmt>
    : node_caster<tilewright::Stmt, accept_sort<tilewright::Sort::kStmt>, false, false> {
  static constexpr auto Name = const_name("tilewright.ir.Stmt");
};
template <>
struct type_caster<tilewright::Type>
    : node_caster<tilewright::Type, accept_sort<tilewright::Sort::kType>, false, true> {
  static constexpr auto Name = const_name("tilewright.ir.Type | str");
};
template <>
struct type_caster<tilewright::Func>
    : node_caster<tilewright::Func, accept_sort<tilewright::Sort::kFunc>, false, false> {
  static constexpr auto Name = const_name("tilewright.ir.Func");
};
template <class T>
struct type_caster<tilewright::Ref<T>> : node_caster<tilewright::Ref<T>, accept_kind<T>, false, false> {
  static constexpr auto Name = make_caster<tilewright::NodeOf<T>>::Name;
};
template <class T>
struct type_caster<tilewright::Def<T>> : node_caster<tilewright::Def<T>, accept_kind<T>, false, false> {
  static constexpr auto Name = make_caster<tilewright::NodeOf<T>>::Name;
};

#pragma GCC visibility push(hidden)  // as that of nanobind's own casters
/// Lists of nodes hold nodes: None is none of them.
template <class Handle>
struct node_list_caster : list_caster<std::vector<Handle>, Handle> {
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    if (!list_caster<std::vector<Handle>, Handle>::from_python(source, flags, cleanup)) return false;
    for (const Handle& item : this->value) {
      if (!item.defined()) return false;
    }
    return true;
  }
};
template <>
struct type_caster<std::vector<tilewright::Expr>> : node_list_caster<tilewright::Expr> {};
template <>
struct type_caster<std::vector<tilewright::Stmt>> : node_list_caster<tilewright::Stmt> {};
template <>
struct type_caster<std::vector<tilewright::Type>> : node_list_caster<tilewright::Type> {};
template <class T>
struct type_caster<std::vector<tilewright::Ref<T>>> : node_list_caster<tilewright::Ref<T>> {};
template <class T>
struct type_caster<std::vector<tilewright::Def<T>>> : node_list_caster<tilewright::Def<T>> {};
#pragma GCC visibility pop

/// A function that gives a Result raises its error.
template <class T>
struct type_caster<tilewright::Result<T>> {
  static constexpr auto Name = make_caster<T>::Name;
  static handle from_cpp(tilewright::Result<T>&& result, rv_policy policy, cleanup_list* cleanup) {
    return make_caster<T>::from_cpp(std::move(result).value_or_throw(), policy, cleanup);
  }
};
template <>
struct type_caster<tilewright::Ok> {
  static constexpr auto Name = const_name("None");
  static handle from_cpp(tilewright::Ok, rv_policy, cleanup_list*) noexcept { return none().release(); }
};

template <>
struct type_caster<tilewright::DataType> {
  NB_TYPE_CASTER(tilewright::DataType, const_name("str"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(tilewright::DataType type, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromString(type.str().c_str());
  }
};

template <>
struct type_caster<tilewright::Annotations> {
  NB_TYPE_CASTER(tilewright::Annotations, const_name("dict[str, object]"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(const tilewright::Annotations& value, rv_policy, cleanup_list*) noexcept;
};

}  // namespace nanobind::detail
