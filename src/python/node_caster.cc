#include "python/node_caster.h"

#include <cmath>
#include <limits>

#include "ir/numeric.h"
#include "python/operand.h"
#include "python/schedule_objects.h"
#include "support/diagnostic.h"

namespace nb = nanobind;

namespace nanobind::detail {

handle put_node(const tilewright::NodeBase* node, cleanup_list* cleanup) noexcept {
  if (!node) return none().release();
  auto* raw = const_cast<tilewright::NodeBase*>(node);
  bool is_new = false;
  handle result = NB_CALL(nb_type_put)(NB_CTX_C(cleanup), &typeid(tilewright::NodeBase), &typeid(*raw), raw,
                                       rv_policy::reference, cleanup, &is_new);
  if (is_new) {
    raw->retain();
    NB_CALL(keep_alive_ptr)
    (NB_CTX, result.ptr(), raw, [](void* p) noexcept { static_cast<tilewright::NodeBase*>(p)->release(); });
  }
  return result;
}

const tilewright::NodeBase* get_node(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
  type_caster<tilewright::NodeBase> caster;
  if (!caster.from_python(source, flags & ~static_cast<uint32_t>(cast_flags::convert), cleanup)) return nullptr;
  return caster.operator tilewright::NodeBase*();
}

bool type_caster<tilewright::DataType>::from_python(handle source, uint32_t, cleanup_list*) noexcept {
  // A dtype name, or anything whose str() is one: np.dtype("float32"), np.float32 has __name__.
  PyObject* text = nullptr;
  if (PyUnicode_Check(source.ptr())) {
    text = Py_NewRef(source.ptr());
  } else if (PyType_Check(source.ptr())) {
    text = PyObject_GetAttrString(source.ptr(), "__name__");
  } else if (PyObject_HasAttrString(source.ptr(), "itemsize") || PyObject_HasAttrString(source.ptr(), "is_complex")) {
    text = PyObject_Str(source.ptr());
  }
  if (!text) {
    PyErr_Clear();
    return false;
  }
  const char* name = PyUnicode_AsUTF8(text);
  std::string_view view = name ? name : "";
  if (view.starts_with("torch.")) view.remove_prefix(6);
  auto parsed = tilewright::DataType::parse(view);
  Py_DECREF(text);
  if (!parsed) {
    PyErr_Clear();
    return false;
  }
  value = *parsed;
  return true;
}

bool type_caster<tilewright::Annotations>::from_python(handle source, uint32_t, cleanup_list*) noexcept {
  value = {};
  if (source.is_none()) return true;
  if (!PyDict_Check(source.ptr())) return false;
  try {
    for (auto [key, item] : borrow<dict>(source)) {
      value.set(nb::cast<std::string>(key), tilewright::python::value_from_python(item));
    }
  } catch (...) {
    PyErr_Clear();
    return false;
  }
  return true;
}

handle type_caster<tilewright::Annotations>::from_cpp(const tilewright::Annotations& value, rv_policy,
                                                      cleanup_list*) noexcept {
  dict result;
  for (const auto& [key, item] : value.entries()) {
    result[str(key.c_str(), key.size())] = tilewright::python::value_to_python(item);
  }
  return result.release();
}

}  // namespace nanobind::detail

namespace tilewright::python {
namespace {

NodeRef number_from_python(nb::handle object) {
  PyObject* p = object.ptr();
  if (PyBool_Check(p)) return bool_imm(p == Py_True);
  if (PyLong_Check(p)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(p, &overflow);
    if (overflow > 0) {
      unsigned long long bits = PyLong_AsUnsignedLongLong(p);
      if (!PyErr_Occurred()) return int_imm(DataType::uint(64), static_cast<int64_t>(bits));
      PyErr_Clear();
      return {};
    }
    if (overflow) return {};
    bool fits_int32 = value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
    return int_imm(DataType::int_(fits_int32 ? 32 : 64), value);
  }
  if (PyFloat_CheckExact(p)) {
    const double value = PyFloat_AS_DOUBLE(p), rounded = round_float(DataType::float_(32), value);
    // A finite number does not become infinite: the error for arguments that do not fit says so.
    return std::isfinite(value) && !std::isfinite(rounded) ? NodeRef() : float_imm(DataType::float_(32), rounded);
  }
  if (PyUnicode_Check(p)) {
    std::string text;  // with any NUL in it
    return nb::try_cast(object, text) ? NodeRef(string_imm(std::move(text))) : NodeRef();
  }
  // NumPy (and ml_dtypes) scalars know their dtype and give a Python number.
  if (!PyObject_HasAttrString(p, "dtype") || !PyObject_HasAttrString(p, "item")) return {};
  if (PyObject_HasAttrString(p, "ndim") && nb::cast<int>(object.attr("ndim")) != 0) return {};
  DataType type;
  if (!nb::try_cast<DataType>(object.attr("dtype"), type)) return {};
  if (type.is_bool()) return bool_imm(nb::cast<bool>(object.attr("item")()));
  if (type.is_integral()) {
    nb::object item = object.attr("item")();
    return type.is_uint() ? int_imm(type, static_cast<int64_t>(nb::cast<uint64_t>(item)))
                          : int_imm(type, nb::cast<int64_t>(item));
  }
  if (type.is_float()) return float_imm(type, nb::cast<double>(nb::float_(object)));
  return {};
}

}  // namespace

namespace {

/// The integer in double precision, rounded to odd: a later rounding to a smaller format is the only one.
double odd_from_python(PyObject* number, double nearest) {
  if (std::fabs(nearest) < 0x1p53 || std::isinf(nearest)) return nearest;
  nb::object back = nb::steal(PyLong_FromDouble(nearest));
  int above = PyObject_RichCompareBool(number, back.ptr(), Py_GT);
  int below = PyObject_RichCompareBool(number, back.ptr(), Py_LT);
  int exponent = 0;
  bool is_odd = std::fmod(std::ldexp(std::frexp(nearest, &exponent), 53), 2) != 0;
  if ((above <= 0 && below <= 0) || is_odd) return nearest;
  return std::nextafter(nearest, above > 0 ? HUGE_VAL : -HUGE_VAL);
}

bool integer_from_python(nb::handle object, Operand& operand) {
  double nearest = PyLong_AsDouble(object.ptr());
  if (PyErr_Occurred()) {  // beyond the range of float64
    PyErr_Clear();
    nearest = HUGE_VAL;
  }
  NodeRef node = constant_from_python(object);
  operand = node.defined() ? Operand(std::move(node)) : number_of_python(nearest);
  operand.is_huge = !operand.node.is<IntImm>();
  operand.is_number = true;
  operand.odd = odd_from_python(object.ptr(), nearest);
  return true;
}

}  // namespace

bool operand_from_python(nb::handle object, Operand& operand) noexcept {
  operand = {};
  if (object.is_none()) return true;
  PyObject* p = object.ptr();
  try {
    if (PyFloat_CheckExact(p)) {
      operand = number_of_python(PyFloat_AS_DOUBLE(p));
      return true;
    }
    if (PyLong_Check(p) && !PyBool_Check(p)) return integer_from_python(object, operand);
    NodeRef node(nb::detail::get_node(object, 0, nullptr));
    operand = nb::detail::as_expression(node.defined() ? std::move(node) : constant_from_python(object));
    return operand.node.defined();
  } catch (...) {
    PyErr_Clear();
    return false;
  }
}

NodeRef constant_from_python(nb::handle object) noexcept {
  try {
    return number_from_python(object);
  } catch (...) {
    PyErr_Clear();
    return {};
  }
}

namespace {

[[noreturn]] void refuse_value(nb::handle object) {
  if (PyLong_Check(object.ptr())) {
    throw Exception(argument_error("arguments/types", "an attribute cannot hold an integer of more than 64 bits",
                                   "write a float, or a string"));
  }
  throw Exception(argument_error(
      "arguments/types", "an attribute cannot hold a value of type " + class_name(object),
      "it holds numbers, strings, expressions, lists and dicts of them: what can be printed and read again"));
}

NodeRef nested_value_from_python(nb::handle object, int depth) {
  NodeRef node(nb::detail::get_node(object, 0, nullptr));
  if (node.defined()) return as_attribute(std::move(node));
  if (PyFloat_CheckExact(object.ptr())) return as_attribute(number_of_python(PyFloat_AS_DOUBLE(object.ptr())).node);
  node = constant_from_python(object);
  if (node.defined()) return node;
  if (depth > kMostNesting)
    throw Exception(
        argument_error("arguments/types", "lists and dicts are nested without end", "one of them holds itself"));
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    List list;
    for (nb::handle item : nb::borrow<nb::object>(object)) {
      list.items.push_back(nested_value_from_python(item, depth + 1));
    }
    return make(std::move(list));
  }
  if (PyDict_Check(object.ptr())) {
    Dict dict;
    for (auto [key, item] : nb::borrow<nb::dict>(object)) {
      std::string name;
      if (!nb::try_cast(key, name)) {
        throw Exception(argument_error("arguments/types",
                                       "an attribute cannot hold a dict with a key of type " + class_name(key),
                                       "keys are strings"));
      }
      dict.items.set(name, nested_value_from_python(item, depth + 1));
    }
    return make(std::move(dict));
  }
  refuse_value(object);
}

}  // namespace

NodeRef value_from_python(nb::handle object) { return nested_value_from_python(object, 0); }

nb::object node_to_python(const NodeRef& node) { return nb::steal(nb::detail::put_node(node.get(), nullptr)); }

nb::object value_to_python(const NodeRef& value) {
  if (!value.defined()) return nb::none();
  if (const StringImm* s = value.as<StringImm>()) return nb::str(s->value.c_str(), s->value.size());
  if (const IntImm* i = value.as<IntImm>()) {
    if (i->dtype.is_bool()) return nb::bool_(i->value != 0);
    if (i->dtype == DataType::int_(32)) return nb::int_(i->value);
  }
  if (const FloatImm* f = value.as<FloatImm>()) {  // of the type that a float of Python has in an attribute
    if (f->dtype == DataType::float_(fits_float32(value) ? 32 : 64)) return nb::float_(f->value);
  }
  if (const List* list = value.as<List>()) {
    nb::list result;
    for (const NodeRef& item : list->items) result.append(value_to_python(item));
    return result;
  }
  if (const Dict* dict = value.as<Dict>()) return nb::cast(dict->items);
  return node_to_python(value);
}

}  // namespace tilewright::python
