// Devices and the arrays in their memory.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>

#include "codegen/signature.h"
#include "python/call_arguments.h"
#include "python/device_array.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/process_exit.h"
#include "runtime/device.h"

namespace tilewright::python {

void DeviceMemory::free() {
  if (owner) {
    if (owner->deleter) owner->deleter(owner);
  } else if (handle && device.device_type == kDLCPU) {
    std::free(handle);
  } else if (handle) {
    tw_device_free(device, handle);
  }
  owner = nullptr;
  handle = nullptr;
}

int64_t DeviceArray::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

bool DeviceArray::is_compact() const {
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d]) {
    if (shape[d] > 1 && strides[d] != step) return elements() == 0;
  }
  return true;
}

DLTensor DeviceArray::tensor() const {
  DLTensor result{};
  result.data = memory->handle;
  result.device = memory->device;
  result.ndim = static_cast<int32_t>(shape.size());
  result.dtype = codegen::dlpack_type(dtype);
  result.shape = const_cast<int64_t*>(shape.data());
  result.strides = const_cast<int64_t*>(strides.data());
  result.byte_offset = static_cast<uint64_t>(byte_offset);
  return result;
}

namespace {

nb::handle array_type;

/// What `work(context)` returns, without the GIL; raises for the code of an error. Ctrl-C ends waiting.
template <class Work>
void on_device(Work&& work) {
  tw_ctx* const context = tw_default_ctx();
  Interrupts interrupts(context);
  const int32_t code = gil_released([&] { return work(context); });
  if (code == TW_OK) return;
  if (code == TW_ERROR_INTERRUPTED) {
    interrupts.raise();
  } else {
    raise_kernel_error(code, tw_last_error());
  }
  throw nb::python_error();
}

bool is_host(const DeviceArray& array) { return array.memory->device.device_type == kDLCPU; }

void check_alive(const DeviceArray& array) {
  if (array.memory->handle) return;
  throw Exception(
      argument_error("device/freed", "the array was freed", "use a copy that was made before: array.numpy()"));
}

std::byte* address_of(const DeviceArray& array) {
  return static_cast<std::byte*>(array.memory->handle) + array.byte_offset;
}

tw_device_pointer pointer_of(const DeviceArray& array) { return {array.memory->handle, array.byte_offset}; }

DeviceArray make_array(int32_t type, int32_t id, const std::string& dtype, std::vector<int64_t> shape, bool zero) {
  const std::optional<DataType> parsed = DataType::parse(dtype);
  if (!parsed || parsed->lanes > 1 || parsed->bits < 1 || parsed->is_handle()) {
    throw Exception(argument_error("device/dtype",
                                   fmt::format("an array on a device has no elements of type {}", dtype),
                                   "take a type of numbers, such as float32"));
  }
  DeviceArray array;
  array.memory = std::make_shared<DeviceMemory>();
  array.dtype = *parsed;
  array.shape = std::move(shape);
  array.strides.resize(array.shape.size());
  int64_t step = 1;
  for (size_t d = array.shape.size(); d-- > 0; step *= std::max<int64_t>(array.shape[d], 1)) array.strides[d] = step;
  DeviceMemory& memory = *array.memory;
  memory.device = {static_cast<DLDeviceType>(type), id};
  memory.bytes = array.bytes();
  if (type == kDLCPU) {
    const size_t size = (static_cast<size_t>(std::max<int64_t>(memory.bytes, 1)) + 63) / 64 * 64;
    memory.handle = std::aligned_alloc(64, size);
    if (!memory.handle)
      throw Exception(resource_error("call/memory", fmt::format("no memory for {} bytes", size), "free some"));
    if (zero) std::memset(memory.handle, 0, size);
    return array;
  }
  on_device([&](tw_ctx* context) -> int32_t {
    memory.handle = tw_device_allocate(context, memory.device, memory.bytes);
    if (!memory.handle) return context->error_code;
    return zero ? tw_device_fill_zero(context, memory.device, {memory.handle, 0}, memory.bytes) : TW_OK;
  });
  return array;
}

/// The contiguous memory of a Python object.
class HostBytes {
 public:
  HostBytes(nb::handle object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0)
      throw nb::python_error();
  }
  ~HostBytes() { PyBuffer_Release(&view_); }
  HostBytes(const HostBytes&) = delete;
  void* data() const { return view_.buf; }
  int64_t size() const { return view_.len; }

 private:
  Py_buffer view_;
};

void upload(const DeviceArray& array, nb::handle source) {
  check_alive(array);
  HostBytes bytes(source, false);
  TW_CHECK(array.is_compact() && bytes.size() == array.bytes(), "as many bytes as the array has");
  if (bytes.size() == 0) return;
  if (is_host(array)) {
    std::memcpy(address_of(array), bytes.data(), static_cast<size_t>(bytes.size()));
    return;
  }
  on_device([&](tw_ctx* context) {
    return tw_device_upload(context, array.memory->device, pointer_of(array), bytes.data(), bytes.size());
  });
}

/// The first bytes from where the array begins, as many as the target has.
void download(const DeviceArray& array, nb::handle target) {
  check_alive(array);
  HostBytes bytes(target, true);
  TW_CHECK(array.byte_offset + bytes.size() <= array.memory->bytes, "no more than the memory has");
  if (bytes.size() == 0) return;
  if (is_host(array)) {
    std::memcpy(bytes.data(), address_of(array), static_cast<size_t>(bytes.size()));
    return;
  }
  on_device([&](tw_ctx* context) {
    return tw_device_download(context, array.memory->device, bytes.data(), pointer_of(array), bytes.size());
  });
}

/// Both compact, of one type and size, on one device.
void copy_on_device(const DeviceArray& to, const DeviceArray& from) {
  check_alive(to);
  check_alive(from);
  TW_CHECK(to.is_compact() && from.is_compact() && to.bytes() == from.bytes(), "arrays of one layout");
  if (is_host(to)) {
    std::memmove(address_of(to), address_of(from), static_cast<size_t>(to.bytes()));
    return;
  }
  on_device([&](tw_ctx* context) {
    return tw_device_copy(context, to.memory->device, pointer_of(to), pointer_of(from), to.bytes());
  });
}

// ---- DLPack
// --------------------------------------------------------------------------------------------------------------

/// What an exported tensor keeps alive: the array.
struct Exported {
  DeviceArray array;
  DLManagedTensorVersioned versioned;
  DLManagedTensor plain;
};

void drop_unused(PyObject* capsule) {
  for (const char* name : {"dltensor_versioned", "dltensor"}) {
    if (!PyCapsule_IsValid(capsule, name)) continue;
    void* const managed = PyCapsule_GetPointer(capsule, name);
    if (std::strcmp(name, "dltensor") == 0) {
      auto* tensor = static_cast<DLManagedTensor*>(managed);
      tensor->deleter(tensor);
    } else {
      auto* tensor = static_cast<DLManagedTensorVersioned*>(managed);
      tensor->deleter(tensor);
    }
  }
}

nb::object export_dlpack(const DeviceArray& array, bool is_versioned) {
  check_alive(array);
  auto* exported = new Exported{array, {}, {}};
  const DLTensor tensor = exported->array.tensor();
  void* managed = nullptr;
  if (is_versioned) {
    exported->versioned.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    exported->versioned.manager_ctx = exported;
    exported->versioned.deleter = [](DLManagedTensorVersioned* self) {
      delete static_cast<Exported*>(self->manager_ctx);
    };
    exported->versioned.flags = array.dtype.bits < 8 ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
    exported->versioned.dl_tensor = tensor;
    managed = &exported->versioned;
  } else {
    exported->plain.manager_ctx = exported;
    exported->plain.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
    exported->plain.dl_tensor = tensor;
    managed = &exported->plain;
  }
  PyObject* capsule = PyCapsule_New(managed, is_versioned ? "dltensor_versioned" : "dltensor", drop_unused);
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

std::optional<DataType> type_of(DLDataType type) {
  for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                           "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
    const DataType known = *DataType::parse(name);
    const DLDataType same = codegen::dlpack_type(known);
    if (same.code == type.code && same.bits == type.bits && type.lanes == 1) return known;
  }
  return std::nullopt;
}

/// The array of a capsule "dltensor_versioned", which is used up.
DeviceArray import_dlpack(nb::handle capsule) {
  auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
  if (!managed) throw nb::python_error();
  const DLTensor& tensor = managed->dl_tensor;
  const std::optional<DataType> dtype = type_of(tensor.dtype);
  if (!dtype || managed->version.major != DLPACK_MAJOR_VERSION) {
    throw Exception(argument_error("device/dtype", "the tensor has elements that arrays on devices do not have",
                                   "convert it to a type of numbers first, such as float32"));
  }
  DeviceArray array;
  array.memory = std::make_shared<DeviceMemory>();
  array.memory->device = tensor.device;
  array.memory->handle = tensor.data;
  array.dtype = *dtype;
  array.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  array.strides.resize(array.shape.size());
  int64_t compact = 1, last = 0;
  for (size_t d = array.shape.size(); d-- > 0; compact *= std::max<int64_t>(array.shape[d], 1)) {
    array.strides[d] = tensor.strides ? tensor.strides[d] : compact;
    last += std::max<int64_t>(array.shape[d] - 1, 0) * array.strides[d];
  }
  array.byte_offset = static_cast<int64_t>(tensor.byte_offset);
  array.memory->bytes = array.byte_offset + (last + 1) * dtype->bytes();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
  array.memory->owner = managed;
  return array;
}

int32_t count_devices(int32_t type) {
  return type == kDLCPU ? 1 : type == kDLCUDA ? tw_cuda_count(nullptr, 0) : tw_opencl_count(nullptr, 0);
}

}  // namespace

const DeviceArray* device_array_of(PyObject* object) {
  if (!array_type.is_valid() || !PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(array_type.ptr())))
    return nullptr;
  return nb::inst_ready(object) ? nb::inst_ptr<DeviceArray>(object) : nullptr;
}

void bind_device(nb::module_& m) {
  using Shape = std::vector<int64_t>;
  array_type =
      nb::class_<DeviceArray>(m, "DeviceArrayBase", "An array in memory of a device.")
          .def(
              "__init__",
              [](DeviceArray* self, int32_t type, int32_t id, const std::string& dtype, Shape shape, bool zero) {
                new (self) DeviceArray(make_array(type, id, dtype, std::move(shape), zero));
              },
              "device_type"_a, "device_id"_a, "dtype"_a, "shape"_a, "zero"_a = false)
          .def(
              "__init__",
              [](DeviceArray* self, const DeviceArray& of, Shape shape, Shape strides, int64_t byte_offset) {
                check_alive(of);
                new (self) DeviceArray{of.memory, of.dtype, std::move(shape), std::move(strides),
                                       of.byte_offset + byte_offset};
              },
              "of"_a, "shape"_a, "strides"_a, "byte_offset"_a)
          .def(
              "__init__", [](DeviceArray* self, nb::capsule tensor) { new (self) DeviceArray(import_dlpack(tensor)); },
              "tensor"_a)
          .def_prop_ro(
              "device_type", [](const DeviceArray& a) { return static_cast<int>(a.memory->device.device_type); },
              "As DLPack numbers kinds.")
          .def_prop_ro("device_id", [](const DeviceArray& a) { return a.memory->device.device_id; })
          .def_prop_ro("type_name", [](const DeviceArray& a) { return a.dtype.str(); })
          .def_prop_ro(
              "extents", [](const DeviceArray& a) { return a.shape; }, "The shape, as a list.")
          .def_prop_ro(
              "steps", [](const DeviceArray& a) { return a.strides; }, "The strides, in elements.")
          .def_prop_ro("is_compact", &DeviceArray::is_compact)
          .def_prop_ro(
              "is_freed", [](const DeviceArray& a) { return a.memory->handle == nullptr; },
              "Whether its memory was freed.")
          .def("upload", &upload, "source"_a, "Copies the bytes of a buffer to the array.")
          .def("download", &download, "target"_a, "Copies bytes from where the array begins to a buffer.")
          .def("copy_within_device", &copy_on_device, "source"_a,
               "Copies a compact array of the same type, size and device, without waiting.")
          .def(
              "release", [](const DeviceArray& a) { a.memory->free(); }, "Frees the memory.")
          .def("dlpack_capsule", &export_dlpack, "versioned"_a, "A capsule of DLPack that shares the memory.");
  m.def("count_devices", &count_devices, "device_type"_a, "Devices of a kind of DLPack; -1 where there is no driver.");
  m.def("default_opencl_device", [] { return std::max(tw_opencl_default(), 0); });
  m.def(
      "wait_for_device",
      [](int32_t type, int32_t id) {
        on_device([&](tw_ctx* context) { return tw_device_wait(context, {static_cast<DLDeviceType>(type), id}); });
      },
      "device_type"_a, "device_id"_a);
  m.def("count_device_memory", &tw_device_count_memory, "How many allocations of device memory exist in this process.");
}

}  // namespace tilewright::python
