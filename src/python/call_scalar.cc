// Scalar arguments: numbers of Python and NumPy, checked against the range of the parameter's type.
#include <fmt/format.h>

#include <cfloat>
#include <cmath>
#include <cstring>

#include "python/call_arguments.h"

namespace tilewright::python {
namespace {

std::string repr(PyObject* object) {
  PyObject* text = PyObject_Repr(object);
  const char* utf8 = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string result = utf8 ? utf8 : Py_TYPE(object)->tp_name;
  Py_XDECREF(text);
  PyErr_Clear();
  return result.size() <= 60 ? result : result.substr(0, 57) + "...";
}

bool refuse_value(PyObject* object, const tw_signature* signature, const tw_param* param, const char* hint) {
  return refuse(signature, param, TW_ERROR_SCALAR,
                fmt::format("expected {}, got {}", describe(signature, param), repr(object)), hint);
}

bool read_bool(PyObject* object, const tw_signature* signature, const tw_param* param, tw_scalar& scalar) {
  // NumPy's bool is no integer; 0 and 1 of any integer type are as good.
  std::string_view type = Py_TYPE(object)->tp_name;
  if (PyBool_Check(object) || type == "numpy.bool" || type == "numpy.bool_") {
    scalar.i = PyObject_IsTrue(object);
    return true;
  }
  Py_ssize_t value = PyIndex_Check(object) ? PyNumber_AsSsize_t(object, nullptr) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  if (value != 0 && value != 1) return refuse_value(object, signature, param, "pass True or False");
  scalar.i = value;
  return true;
}

bool read_integer(PyObject* object, const tw_signature* signature, const tw_param* param, tw_scalar& scalar) {
  PyObject* integer = PyLong_CheckExact(object) ? Py_NewRef(object) : PyNumber_Index(object);
  if (!integer) {
    PyErr_Clear();
    return refuse_value(object, signature, param, "pass an integer");
  }
  int bits = param->dtype.bits;
  bool fits;
  if (param->dtype.code == kDLUInt || param->dtype.code == kDLOpaqueHandle) {
    uint64_t value = PyLong_AsUnsignedLongLong(integer);
    fits = !PyErr_Occurred() && (bits >= 64 || value >> bits == 0);
    scalar.i = static_cast<int64_t>(value);
  } else {
    int overflow = 0;
    int64_t value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    fits = !overflow && (bits >= 64 || (value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1)));
    scalar.i = value;
  }
  PyErr_Clear();
  Py_DECREF(integer);
  return fits || refuse_value(object, signature, param, "the value is outside the range of this type");
}

/// The largest finite value; numbers beyond it are refused, infinities and NaN are not.
double largest(DLDataType dtype) {
  if (dtype.code == kDLBfloat) return 3.3895313892515355e38;
  if (dtype.code == kDLFloat8_e4m3fn) return 448;
  if (dtype.code == kDLFloat8_e5m2) return 57344;
  if (dtype.bits == 16) return 65504;
  return dtype.bits == 32 ? FLT_MAX : DBL_MAX;
}

bool read_float(PyObject* object, const tw_signature* signature, const tw_param* param, tw_scalar& scalar) {
  scalar.f = PyFloat_AsDouble(object);
  if (scalar.f == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    return refuse_value(object, signature, param, "pass a number that a float can hold");
  }
  if (std::isfinite(scalar.f) && std::fabs(scalar.f) > largest(param->dtype))
    return refuse_value(object, signature, param, "the value is outside the range of this type");
  return true;
}

/// Whether the object is more than a number: an array, a complex number or a masked one would be cut down to one.
bool is_more_than_a_number(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object)) return false;
  bool more = PyComplex_Check(object) || is_masked_array(object);
  PyObject* dims = PyObject_GetAttrString(object, "ndim");
  if (dims) more |= PyLong_Check(dims) && PyLong_AsLong(dims) != 0;
  PyErr_Clear();
  PyObject* dtype = PyObject_GetAttrString(object, "dtype");
  PyErr_Clear();
  PyObject* kind = dtype ? PyObject_GetAttrString(dtype, "kind") : nullptr;
  PyErr_Clear();
  if (kind && PyUnicode_Check(kind)) more |= PyUnicode_CompareWithASCIIString(kind, "c") == 0;
  Py_XDECREF(kind);
  Py_XDECREF(dtype);
  Py_XDECREF(dims);
  return more;
}

}  // namespace

bool is_masked_array(PyObject* object) {
  PyObject* order = Py_TYPE(object)->tp_mro;
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    if (std::strcmp(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i))->tp_name, "MaskedArray") == 0)
      return true;
  }
  return false;
}

bool read_scalar(PyObject* object, const tw_signature* signature, const tw_param* param, tw_scalar& scalar) {
  const bool is_more = is_more_than_a_number(object);
  if (param->dtype.code == kDLOpaqueHandle && (is_more || !PyIndex_Check(object))) {
    return refuse_value(
        object, signature, param,
        "no buffer of the program is bound to this T.handle, so the call takes an address, an integer: to "
        "pass an array, bind it with T.match_buffer, or remove the parameter");
  }
  if (is_more) return refuse_value(object, signature, param, "pass a single real number");
  switch (param->dtype.code) {
    case kDLBool:
      return read_bool(object, signature, param, scalar);
    case kDLInt:
    case kDLUInt:
    case kDLOpaqueHandle:
      return read_integer(object, signature, param, scalar);
    default:
      return read_float(object, signature, param, scalar);
  }
}

}  // namespace tilewright::python
