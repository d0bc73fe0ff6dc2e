// Tensor arguments: the buffer protocol first, then the element types that it cannot express, then DLPack.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "python/call_arguments.h"
#include "python/device_array.h"

namespace tilewright::python {
namespace {

/// A new reference that is dropped at the end of the scope.
class Owned {
 public:
  explicit Owned(PyObject* object) : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

/// A Python error taken out of the thread's state.
struct TakenError {
  std::string text;  ///< never empty
  PyObject* value;   ///< the exception, a reference that the taker gives away; may be null
};

TakenError take_error() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Owned text(value ? PyObject_Str(value) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  TakenError error{utf8 ? utf8 : "", value};
  if (error.text.empty()) error.text = type ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "unknown error";
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return error;
}

/// Makes `cause` the reason of the current Python error, and drops the reference.
void set_cause(PyObject* cause) {
  if (!cause) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyException_SetCause(value, cause);
  PyErr_Restore(type, value, traceback);
}

/// Reads an element format of the struct module. False: not a number, or not a single one.
bool parse_format(const char* format, Py_ssize_t itemsize, DLDataType& dtype, bool& swapped) {
  swapped = false;
  if (!format) format = "B";
  switch (*format) {
    case '>':
    case '!':
      swapped = itemsize > 1;
      [[fallthrough]];
    case '@':
    case '=':
    case '<':
    case '|':
      ++format;
  }
  bool complex = *format == 'Z';
  if (complex) ++format;
  uint8_t code;
  switch (*format) {
    case '?':
      code = kDLBool;
      break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      code = kDLInt;
      break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      code = kDLUInt;
      break;
    case 'e':
    case 'f':
    case 'd':
    case 'g':
      code = complex ? kDLComplex : kDLFloat;
      break;
    default:
      return false;
  }
  if (format[1] != '\0' || itemsize > 31 || (complex && code != kDLComplex)) return false;
  dtype = {code, static_cast<uint8_t>(itemsize * 8), 1};
  return true;
}

bool refuse_read_only(const tw_signature* signature, const tw_param* param) {
  return refuse(signature, param, TW_ERROR_READ_ONLY,
                "expected an array that may be written, since the kernel writes to it, got a read-only one",
                fmt::format("pass a copy, such as {}.copy()", param->name));
}

/// Strides of a buffer count bytes, those of a tensor elements.
bool convert_strides(const tw_signature* signature, const tw_param* param, TensorArgument& argument) {
  const Py_buffer& view = argument.view;
  int64_t* strides = argument.strides;
  if (view.ndim > TensorArgument::kInlineDims) strides = argument.heap_strides = new int64_t[view.ndim];
  argument.tensor.strides = strides;
  if (!view.strides) {  // compact: ctypes arrays export no strides, even on request
    int64_t elements = 1;
    for (int d = view.ndim; d-- > 0; elements *= view.shape[d]) strides[d] = elements;
    return true;
  }
  for (int d = 0; d < view.ndim; ++d) {
    int64_t bytes = view.strides[d];
    strides[d] = bytes / view.itemsize;
    if (strides[d] * view.itemsize != bytes && view.shape[d] > 1) [[unlikely]] {
      return refuse(
          signature, param, TW_ERROR_STRIDES,
          fmt::format("expected strides that are whole elements, got {} bytes in dimension {} for elements of {}",
                      bytes, d, view.itemsize),
          "pass a contiguous copy: this view skips parts of a record");
    }
  }
  return true;
}

/// The view has been acquired; its element type is `dtype`.
bool use_view(const tw_signature* signature, const tw_param* param, DLDataType dtype, TensorArgument& argument) {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  const Py_buffer& view = argument.view;
  if (view.readonly && (param->flags & TW_PARAM_WRITTEN)) return refuse_read_only(signature, param);
  DLTensor& tensor = argument.tensor;
  tensor.data = view.buf;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = view.ndim;
  tensor.dtype = dtype;
  tensor.shape = reinterpret_cast<int64_t*>(view.shape);
  tensor.byte_offset = 0;
  return convert_strides(signature, param, argument);
}

bool acquire(PyObject* object, Py_buffer* view) {
  if (PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) == 0) return true;
  view->obj = nullptr;
  return false;
}

bool read_buffer(const tw_signature* signature, const tw_param* param, TensorArgument& argument) {
  const Py_buffer& view = argument.view;
  DLDataType dtype;
  bool swapped;
  if (!parse_format(view.format, view.itemsize, dtype, swapped)) [[unlikely]] {
    return refuse(signature, param, TW_ERROR_DTYPE,
                  fmt::format("expected {}, got elements of format '{}'", describe(signature, param), view.format),
                  "pass an array of numbers");
  }
  if (swapped) [[unlikely]] {
    return refuse(signature, param, TW_ERROR_DTYPE,
                  "expected numbers in this machine's byte order, got the opposite order",
                  fmt::format("convert it: {0}.astype({0}.dtype.newbyteorder('='))", param->name));
  }
  return use_view(signature, param, dtype, argument);
}

// ---- Element types that buffers cannot express

struct NamedType {
  const char* name;  // name of NumPy's dtype
  DLDataType dtype;
  const char* carrier;  // integers of the same size
};
constexpr NamedType kNamedTypes[] = {
    {"bfloat16", {kDLBfloat, 16, 1}, "uint16"},
    {"float8_e3m4", {kDLFloat8_e3m4, 8, 1}, "uint8"},
    {"float8_e4m3", {kDLFloat8_e4m3, 8, 1}, "uint8"},
    {"float8_e4m3b11fnuz", {kDLFloat8_e4m3b11fnuz, 8, 1}, "uint8"},
    {"float8_e4m3fn", {kDLFloat8_e4m3fn, 8, 1}, "uint8"},
    {"float8_e4m3fnuz", {kDLFloat8_e4m3fnuz, 8, 1}, "uint8"},
    {"float8_e5m2", {kDLFloat8_e5m2, 8, 1}, "uint8"},
    {"float8_e5m2fnuz", {kDLFloat8_e5m2fnuz, 8, 1}, "uint8"},
    {"float8_e8m0fnu", {kDLFloat8_e8m0fnu, 8, 1}, "uint8"},
    {"float6_e2m3fn", {kDLFloat6_e2m3fn, 6, 1}, "uint8"},
    {"float6_e3m2fn", {kDLFloat6_e3m2fn, 6, 1}, "uint8"},
    {"float4_e2m1fn", {kDLFloat4_e2m1fn, 4, 1}, "uint8"},
    {"int4", {kDLInt, 4, 1}, "uint8"},
    {"uint4", {kDLUInt, 4, 1}, "uint8"},
    {"int2", {kDLInt, 2, 1}, "uint8"},
    {"uint2", {kDLUInt, 2, 1}, "uint8"},
};

/// The entry for an array's dtype, or null; no Python error is left.
const NamedType* named_type_of(PyObject* object) {
  Owned dtype(PyObject_GetAttrString(object, "dtype"));
  Owned name(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  if (!text) return nullptr;
  for (const NamedType& type : kNamedTypes) {
    if (std::strcmp(type.name, text) == 0) return &type;
  }
  return nullptr;
}

/// Through the same memory seen as integers.
bool read_named_type(PyObject* object, const NamedType& type, const tw_signature* signature, const tw_param* param,
                     TensorArgument& argument) {
  Owned name(PyUnicode_FromString("view")), carrier(PyUnicode_FromString(type.carrier));
  if (!name || !carrier) return false;
  PyObject* const arguments[] = {object, carrier.get()};
  Owned integers(PyObject_VectorcallMethod(name.get(), arguments, 2, nullptr));
  if (!integers || !acquire(integers.get(), &argument.view)) {
    TakenError error = take_error();
    refuse(signature, param, TW_ERROR_OTHER_ARGUMENT,
           fmt::format("expected {}, got an array that does not show its memory: {}", describe(signature, param),
                       error.text));
    set_cause(error.value);
    return false;
  }
  return use_view(signature, param, type.dtype, argument);
}

// ---- DLPack

/// The stream that the kernel runs on, as DLPack numbers those of CUDA. Null where the tensor is on another device; no
/// Python error is left.
PyObject* stream_for(PyObject* object, const tw_signature* signature) {
  if (signature->device_type != kDLCUDA) return nullptr;
  Owned device(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  Owned type(device ? PySequence_GetItem(device.get(), 0) : nullptr);
  const bool is_there = type && PyLong_AsLong(type.get()) == kDLCUDA;
  PyErr_Clear();
  if (!is_there) return nullptr;
  constexpr long kLegacyDefault = 1;
  void* const stream = tw_default_ctx()->stream;
  return stream ? PyLong_FromVoidPtr(stream) : PyLong_FromLong(kLegacyDefault);
}

/// __dlpack__(max_version=(1, 1), stream=...), or without the first keyword for producers that do not know it.
PyObject* call_dlpack(PyObject* method, PyObject* stream) {
  static PyObject* const version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  static PyObject* const both = Py_BuildValue("(ss)", "max_version", "stream");
  static PyObject* const one = Py_BuildValue("(s)", "max_version");
  static PyObject* const other = Py_BuildValue("(s)", "stream");
  PyObject* const values[] = {version, stream};
  PyObject* capsule = PyObject_Vectorcall(method, values, 0, stream ? both : one);
  if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();
  return stream ? PyObject_Vectorcall(method, &stream, 0, other) : PyObject_CallNoArgs(method);
}

bool is_true(PyObject* object, const char* attribute) {
  Owned value(PyObject_GetAttrString(object, attribute));
  bool result = value && PyObject_IsTrue(value.get()) == 1;
  PyErr_Clear();
  return result;
}

bool refuse_dlpack(PyObject* object, const tw_signature* signature, const tw_param* param, TakenError error) {
  std::string hint;
  if (is_true(object, "requires_grad")) {
    hint = fmt::format("pass {}.detach(): a kernel records no gradients", param->name);
  } else if (PyObject_HasAttrString(object, "clone")) {
    hint = fmt::format("pass a dense copy in this machine's memory, such as {}.clone()", param->name);
  }
  // Only the first line: what follows in the texts of some producers is a trace of their internals.
  refuse(signature, param, TW_ERROR_OTHER_ARGUMENT,
         fmt::format("expected {}, got a {} that cannot be shared: {}", describe(signature, param),
                     Py_TYPE(object)->tp_name, error.text.substr(0, error.text.find('\n'))),
         hint);
  set_cause(error.value);
  return false;
}

bool refuse_padding(const tw_signature* signature, const tw_param* param, const DLTensor& tensor) {
  return refuse(signature, param, TW_ERROR_DTYPE,
                fmt::format("expected elements of {} bits in a byte each, got packed ones", tensor.dtype.bits),
                "pass a copy with one element per byte");
}

bool use_managed(const DLManagedTensorVersioned* shared, const tw_signature* signature, const tw_param* param,
                 TensorArgument& argument) {
  if (shared->version.major != DLPACK_MAJOR_VERSION) {
    return refuse(signature, param, TW_ERROR_OTHER_ARGUMENT,
                  fmt::format("expected a tensor of DLPack {}, got version {}.{}", DLPACK_MAJOR_VERSION,
                              shared->version.major, shared->version.minor));
  }
  if ((shared->flags & DLPACK_FLAG_BITMASK_READ_ONLY) && (param->flags & TW_PARAM_WRITTEN))
    return refuse_read_only(signature, param);
  if (shared->dl_tensor.dtype.bits < 8 && !(shared->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED))
    return refuse_padding(signature, param, shared->dl_tensor);
  argument.tensor = shared->dl_tensor;
  return true;
}

bool read_capsule(PyObject* object, PyObject* capsule, const tw_signature* signature, const tw_param* param,
                  TensorArgument& argument) {
  // The capsule keeps its name and stays the owner: when it goes, it calls the deleter itself.
  if (auto* shared = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned")))
    return use_managed(shared, signature, param, argument);
  PyErr_Clear();
  if (auto* shared = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"))) {
    if (shared->dl_tensor.dtype.bits < 8) return refuse_padding(signature, param, shared->dl_tensor);
    argument.tensor = shared->dl_tensor;
    return true;
  }
  PyErr_Clear();
  return refuse(signature, param, TW_ERROR_OTHER_ARGUMENT,
                fmt::format("expected {}, got a {} whose __dlpack__() returns no tensor", describe(signature, param),
                            Py_TYPE(object)->tp_name));
}

bool read_dlpack(PyObject* object, PyObject* method, const tw_signature* signature, const tw_param* param,
                 TensorArgument& argument) {
  Owned stream(stream_for(object, signature));
  argument.owner = call_dlpack(method, stream.get());
  if (!argument.owner) return refuse_dlpack(object, signature, param, take_error());
  return read_capsule(object, argument.owner, signature, param, argument);
}

// ---- DLPack without Python calls

/// Contents of the capsule `__dlpack_c_exchange_api__` of a type, in the layout of DLPack 1.3.
struct ExchangeApi {
  DLPackVersion version;
  const ExchangeApi* older;
  int (*allocate)(DLTensor*, DLManagedTensorVersioned**, void*, void (*)(void*, const char*, const char*));
  int (*managed_from_object)(void* object, DLManagedTensorVersioned** out);
  int (*object_from_managed)(DLManagedTensorVersioned* tensor, void** out);
  int (*borrow_from_object)(void* object, DLTensor* out);  ///< may be null
  int (*current_stream)(DLDeviceType device, int32_t index, void** out);
};

/// The table of a type, or null. Remembers a few types; they are kept alive so that their addresses stay theirs.
const ExchangeApi* exchange_api(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type;
    const ExchangeApi* api;
  };
  static Known known[8];
  static int next = 0;
  for (const Known& entry : known) {
    if (entry.type == type) return entry.api;
  }
  Owned capsule(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__"));
  const void* pointer = capsule ? PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api") : nullptr;
  PyErr_Clear();
  const auto* api = static_cast<const ExchangeApi*>(pointer);
  while (api && api->version.major != DLPACK_MAJOR_VERSION) api = api->older;
  PyTypeObject* dropped = known[next].type;
  Py_INCREF(type);
  known[next] = {type, api};
  next = (next + 1) % 8;
  Py_XDECREF(dropped);
  return api;
}

/// Returns a property of a PyTorch tensor that its memory does not show, and that PyTorch exports anyway. Null if there
/// is none.
const char* hidden_meaning(PyObject* object) {
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  Owned gradient(PyObject_GetAttr(object, requires_grad));
  if (gradient && PyObject_IsTrue(gradient.get()) == 1) return "it records gradients";
  Owned negated(gradient ? PyObject_CallMethodNoArgs(object, is_neg) : nullptr);
  PyErr_Clear();
  return negated && PyObject_IsTrue(negated.get()) == 1 ? "it is a view that negates the values in memory" : nullptr;
}

bool read_exchange(PyObject* object, const ExchangeApi* api, const tw_signature* signature, const tw_param* param,
                   TensorArgument& argument) {
  if (const char* reason = hidden_meaning(object)) {
    PyErr_SetString(PyExc_BufferError, reason);
    return refuse_dlpack(object, signature, param, take_error());
  }
  // Only the owning form says whether the data may be written.
  if (!(param->flags & TW_PARAM_WRITTEN) && api->borrow_from_object) {
    if (api->borrow_from_object(object, &argument.tensor) == 0) return true;
  } else if (api->managed_from_object(object, &argument.managed) == 0) {
    return use_managed(argument.managed, signature, param, argument);
  }
  argument.managed = nullptr;
  return refuse_dlpack(object, signature, param, take_error());
}

bool read_device_array(const DeviceArray& array, const tw_signature* signature, const tw_param* param,
                       TensorArgument& argument) {
  if (array.memory->is_read_only && (param->flags & TW_PARAM_WRITTEN)) return refuse_read_only(signature, param);
  argument.tensor = array.tensor();
  if (!array.memory->is_freed()) return true;
  return refuse(signature, param, TW_ERROR_OTHER_ARGUMENT,
                fmt::format("expected {}, got an array that was freed", describe(signature, param)),
                "free an array after the last call that uses it");
}

bool refuse_object(PyObject* object, const tw_signature* signature, const tw_param* param) {
  bool none = object == Py_None;
  bool sequence = PyList_Check(object) || PyTuple_Check(object) || PyFloat_Check(object) || PyLong_Check(object);
  return refuse(
      signature, param, TW_ERROR_OTHER_ARGUMENT,
      fmt::format("expected {}, got {}{}", describe(signature, param), none ? "" : "a value of type ",
                  none ? "None" : Py_TYPE(object)->tp_name),
      sequence ? "make it an array first, with numpy.asarray" : "pass a NumPy array, or a tensor that has __dlpack__");
}

}  // namespace

bool read_any(PyObject* object, const tw_signature* signature, const tw_param* param, TensorArgument& argument) {
  static PyObject* const dlpack = PyUnicode_InternFromString("__dlpack__");
  // An array of exactly NumPy's class, the usual case, has two ancestors: itself and object.
  if (PyTuple_GET_SIZE(Py_TYPE(object)->tp_mro) > 2 && is_masked_array(object)) {
    return refuse(
        signature, param, TW_ERROR_OTHER_ARGUMENT, "expected an array, got a masked one, whose mask would be lost",
        fmt::format("pass {}.filled(value), or {}.data if the mask does not matter", param->name, param->name));
  }
  if (PyObject_CheckBuffer(object)) [[likely]] {
    if (acquire(object, &argument.view)) [[likely]]
      return read_buffer(signature, param, argument);
    PyErr_Clear();
    if (const NamedType* type = named_type_of(object))
      return read_named_type(object, *type, signature, param, argument);
  }
  if (const DeviceArray* array = device_array_of(object)) return read_device_array(*array, signature, param, argument);
  if (const ExchangeApi* api = exchange_api(Py_TYPE(object)))
    return read_exchange(object, api, signature, param, argument);
  Owned method(PyObject_GetAttr(object, dlpack));
  if (method) return read_dlpack(object, method.get(), signature, param, argument);
  PyErr_Clear();
  return refuse_object(object, signature, param);
}

bool find_stream(PyObject* object, DLDevice& device, void*& stream) {
  if (PyObject_CheckBuffer(object) || device_array_of(object)) return false;
  const ExchangeApi* api = exchange_api(Py_TYPE(object));
  DLTensor tensor{};
  const bool is_known = api && api->borrow_from_object && api->current_stream &&
                        api->borrow_from_object(object, &tensor) == 0 && tensor.device.device_type == kDLCUDA &&
                        api->current_stream(kDLCUDA, tensor.device.device_id, &stream) == 0;
  PyErr_Clear();
  device = tensor.device;
  return is_known;
}

/// An array of scalars whose last dimension is the lanes of the parameter's vectors, stored contiguously, is one of
/// vectors.
void fold_lanes(const tw_param* param, TensorArgument& argument) {
  DLTensor& tensor = argument.tensor;
  const int64_t lanes = param->dtype.lanes;
  const int last = tensor.ndim - 1;
  if (tensor.dtype.lanes != 1 || last != param->ndim || tensor.shape[last] != lanes) return;
  if (tensor.strides) {
    const bool is_empty = std::find(tensor.shape, tensor.shape + last, 0) != tensor.shape + last;
    const auto is_used = [&](int d) { return !is_empty && tensor.shape[d] > 1; };
    if (tensor.strides[last] != 1 || last > TensorArgument::kInlineDims) return;
    for (int d = 0; d < last; ++d) {
      if (is_used(d) && tensor.strides[d] % lanes != 0) return;
    }
    for (int d = 0; d < last; ++d) argument.strides[d] = tensor.strides[d] / lanes;
    tensor.strides = argument.strides;
  }
  tensor.ndim = last;
  tensor.dtype.lanes = param->dtype.lanes;
}

bool read_tensor(PyObject* object, const tw_signature* signature, const tw_param* param, TensorArgument& argument) {
  if (!read_any(object, signature, param, argument)) return false;
  if (param->dtype.lanes > 1) [[unlikely]]
    fold_lanes(param, argument);
  return true;
}

}  // namespace tilewright::python
