// Devices and the arrays in their memory.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "codegen/signature.h"
#include "python/call_arguments.h"
#include "python/device_array.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/process_exit.h"
#include "runtime/device.h"
#include "support/ranges.h"

namespace tilewright::python {

void DeviceMemory::free() {
  handle = nullptr;
  allocation.reset();
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

/// Returns `work(context)`, run without the GIL; raises if its result is an error code. Ctrl-C ends waiting.
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
  if (!array.memory->is_freed()) return;
  throw Exception(
      argument_error("device/freed", "the array was freed", "use a copy that was made before: array.numpy()"));
}

void check_writable(const DeviceArray& array) {
  check_alive(array);
  if (!array.memory->is_read_only) return;
  throw Exception(argument_error("device/read-only", "the array shares memory that is read-only",
                                 "write to a copy of it: array.copyto(array.device)"));
}

std::string text_of(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// Refuses a shape whose elements cannot be counted: in bytes, and with extents of 0 taken for 1, as strides do.
void check_shape(const std::vector<int64_t>& shape, const DataType& dtype) {
  int64_t bytes = dtype.bytes();
  bool fits = true;
  for (int64_t extent : shape) {
    if (extent < 0) {
      throw Exception(argument_error("device/shape",
                                     fmt::format("an array has no shape {}: an extent is negative", text_of(shape))));
    }
    fits = fits && !__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes);
  }
  if (fits) return;
  throw Exception(argument_error(
      "device/shape",
      fmt::format("an array of {} has no shape {}: its bytes are more than 2**63 - 1", dtype.str(), text_of(shape)),
      "give it fewer elements"));
}

/// Bytes from the first element to the one with the lowest address, at most 0, and behind that with the highest one.
struct Reach {
  int64_t low = 0, high = 0;
};

/// Returns the byte range that the elements occupy; nothing if it does not fit 64 bits.
std::optional<Reach> reach_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                              const DataType& dtype) {
  Reach reach;
  if (is_contained(shape, 0)) return reach;
  reach.high = dtype.bytes();
  for (size_t d : indices_of(shape)) {
    int64_t last;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &last)) return {};
    if (__builtin_mul_overflow(last, int64_t{dtype.bytes()}, &last)) return {};
    int64_t& end = last < 0 ? reach.low : reach.high;
    if (__builtin_add_overflow(end, last, &end)) return {};
  }
  return reach;
}

/// The elements of the array are in its memory.
void check_inside(const DeviceArray& array) {
  check_shape(array.shape, array.dtype);
  const bool has_steps = array.strides.size() == array.shape.size();
  const auto reach = has_steps ? reach_of(array.shape, array.strides, array.dtype) : std::nullopt;
  const bool is_empty = reach && reach->high == 0;
  if (is_empty) return;
  const int64_t bytes = array.memory->bytes, begin = array.byte_offset;
  // No sum here overflows: an offset and a reach are compared with what is left of the memory.
  if (reach && begin >= 0 && begin <= bytes && -begin <= reach->low && reach->high <= bytes - begin) return;
  throw Exception(argument_error("device/shape", "the elements of a view are not all in the memory of its array",
                                 "index the array instead: array[4:8]"));
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
  check_shape(array.shape, array.dtype);
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
    memory.allocation = std::shared_ptr<void>(memory.handle, std::free);
    if (zero) std::memset(memory.handle, 0, size);
    return array;
  }
  on_device([&](tw_ctx* context) -> int32_t {
    memory.handle = tw_device_allocate(context, memory.device, memory.bytes);
    if (!memory.handle) return context->error_code;
    memory.allocation = std::shared_ptr<void>(
        memory.handle, [device = memory.device](void* handle) { tw_device_free(device, handle); });
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
  check_writable(array);
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
  if (bytes.size() == 0) return;
  TW_CHECK(array.byte_offset + bytes.size() <= array.memory->bytes, "no more than the memory has");
  if (is_host(array)) {
    std::memcpy(bytes.data(), address_of(array), static_cast<size_t>(bytes.size()));
    return;
  }
  on_device([&](tw_ctx* context) {
    return tw_device_download(context, array.memory->device, bytes.data(), pointer_of(array), bytes.size());
  });
}

/// Whether the two share bytes; each has this many.
bool share_bytes(const tw_device_pointer& a, const tw_device_pointer& b, int64_t bytes) {
  // Addresses of CUDA are memory alike, however they were imported. Of different cl_mem, a yes costs a copy.
  const auto first = reinterpret_cast<intptr_t>(a.memory) + a.offset;
  const auto second = reinterpret_cast<intptr_t>(b.memory) + b.offset;
  return std::abs(first - second) < bytes;
}

/// Copies within a device have to be between different memory: those of OpenCL fail otherwise.
int32_t copy_apart(tw_ctx* context, const DLDevice& device, const tw_device_pointer& to, const tw_device_pointer& from,
                   int64_t bytes) {
  if (!share_bytes(to, from, bytes)) return tw_device_copy(context, device, to, from, bytes);
  void* const staged = tw_device_allocate(context, device, bytes);
  if (!staged) return context->error_code;
  int32_t code = tw_device_copy(context, device, {staged, 0}, from, bytes);
  if (code == TW_OK) code = tw_device_copy(context, device, to, {staged, 0}, bytes);
  tw_device_free(device, staged);
  return code;
}

/// Copies between compact arrays of one type and size on one device.
void copy_on_device(const DeviceArray& to, const DeviceArray& from) {
  check_writable(to);
  check_alive(from);
  TW_CHECK(to.is_compact() && from.is_compact() && to.bytes() == from.bytes(), "arrays of one layout");
  const bool onto_itself = to.memory->handle == from.memory->handle && to.byte_offset == from.byte_offset;
  if (to.bytes() == 0 || onto_itself) return;
  if (is_host(to)) {
    std::memmove(address_of(to), address_of(from), static_cast<size_t>(to.bytes()));
    return;
  }
  on_device([&](tw_ctx* context) {
    return copy_apart(context, to.memory->device, pointer_of(to), pointer_of(from), to.bytes());
  });
}

// ---- DLPack

/// Shape and memory that an exported tensor keeps alive; array.free() leaves the memory to it.
struct Exported {
  DeviceArray array;
  std::shared_ptr<void> allocation;
  std::shared_ptr<bool> is_dropped;  ///< by the consumer
  DLManagedTensorVersioned versioned;
  DLManagedTensor plain;

  void drop() {
    *is_dropped = true;
    delete this;
  }
};

void drop_unused(PyObject* capsule) {
  std::unique_ptr<std::shared_ptr<bool>> is_dropped(static_cast<std::shared_ptr<bool>*>(PyCapsule_GetContext(capsule)));
  // PyTorch 2.13 drops a tensor of a device that it does not have, and leaves the capsule as if it had not.
  if (is_dropped && **is_dropped) return;
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
  if (array.memory->is_read_only && !is_versioned) {
    PyErr_SetString(PyExc_BufferError, "the memory is read-only, which only DLPack 1.0 can say");
    throw nb::python_error();
  }
  auto* exported = new Exported{array, array.memory->allocation, std::make_shared<bool>(false), {}, {}};
  auto is_dropped = std::make_unique<std::shared_ptr<bool>>(exported->is_dropped);
  const DLTensor tensor = exported->array.tensor();
  void* managed = nullptr;
  if (is_versioned) {
    exported->versioned.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    exported->versioned.manager_ctx = exported;
    exported->versioned.deleter = [](DLManagedTensorVersioned* self) {
      static_cast<Exported*>(self->manager_ctx)->drop();
    };
    exported->versioned.flags = (array.dtype.bits < 8 ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0) |
                                (array.memory->is_read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
    exported->versioned.dl_tensor = tensor;
    managed = &exported->versioned;
  } else {
    exported->plain.manager_ctx = exported;
    exported->plain.deleter = [](DLManagedTensor* self) { static_cast<Exported*>(self->manager_ctx)->drop(); };
    exported->plain.dl_tensor = tensor;
    managed = &exported->plain;
  }
  PyObject* capsule = PyCapsule_New(managed, is_versioned ? "dltensor_versioned" : "dltensor", drop_unused);
  if (!capsule) throw nb::python_error();
  PyCapsule_SetContext(capsule, is_dropped.release());
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
  DeviceMemory& memory = *array.memory;
  memory.device = tensor.device;
  memory.handle = tensor.data;
  memory.is_read_only = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  array.dtype = *dtype;
  array.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  check_shape(array.shape, array.dtype);
  array.strides.resize(array.shape.size());
  int64_t compact = 1;
  for (size_t d = array.shape.size(); d-- > 0; compact *= std::max<int64_t>(array.shape[d], 1)) {
    array.strides[d] = tensor.strides ? tensor.strides[d] : compact;
  }
  array.byte_offset = static_cast<int64_t>(tensor.byte_offset);
  const auto reach = reach_of(array.shape, array.strides, array.dtype);
  int64_t end = 0;
  if (!reach || __builtin_add_overflow(array.byte_offset, reach->high, &end)) {
    throw Exception(argument_error("device/shape", "the strides of the tensor lead further than 2**63 - 1 bytes"));
  }
  if (const int64_t begin = array.byte_offset + reach->low; begin < 0) {
    // With negative strides, an address is that of no element with the lowest one.
    if (tensor.device.device_type == kDLOpenCL) {
      throw Exception(argument_error("device/shape", "the strides of the tensor lead in front of its memory"));
    }
    memory.handle = static_cast<std::byte*>(tensor.data) + begin;
    array.byte_offset -= begin;
    end -= begin;
  }
  memory.bytes = end;
  PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
  memory.allocation = std::shared_ptr<void>(managed, [](void* pointer) {
    auto* owner = static_cast<DLManagedTensorVersioned*>(pointer);
    if (owner->deleter) owner->deleter(owner);
  });
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
                DeviceArray view{of.memory, of.dtype, std::move(shape), std::move(strides),
                                 of.byte_offset + byte_offset};
                check_inside(view);
                new (self) DeviceArray(std::move(view));
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
              "is_freed", [](const DeviceArray& a) { return a.memory->is_freed(); }, "Whether its memory was freed.")
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
  m.def(
      "order_streams",
      [](int32_t type, int32_t id, uintptr_t before, uintptr_t after) {
        on_device([&](tw_ctx* context) {
          return tw_device_order(context, {static_cast<DLDeviceType>(type), id}, reinterpret_cast<void*>(before),
                                 reinterpret_cast<void*>(after));
        });
      },
      "device_type"_a, "device_id"_a, "before"_a, "after"_a,
      "What is called on stream `after` from now on waits for what was called on `before`; 0 is the default stream.");
  m.def("count_device_memory", &tw_device_count_memory, "How many allocations of device memory exist in this process.");
}

}  // namespace tilewright::python
