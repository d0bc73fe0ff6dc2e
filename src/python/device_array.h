// Arrays in memory of a device, or of the processor under the same name.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/dtype.h"
#include "runtime/abi.h"

namespace tilewright::python {

/// Memory that arrays share. It is freed with the last of them, and no earlier than kernels that use it end.
struct DeviceMemory {
  DLDevice device;
  void* handle = nullptr;  ///< a cl_mem, or an address; perhaps null where there are no bytes
  int64_t bytes = 0;
  bool is_read_only = false;         ///< whoever exported it with DLPack says so
  std::shared_ptr<void> allocation;  ///< keeps the memory; null: it was freed

  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  bool is_freed() const { return !allocation; }
  /// Arrays that use it are refused from now on. What was exported with DLPack keeps the memory for as long as it
  /// lives.
  void free();
};

struct DeviceArray {
  std::shared_ptr<DeviceMemory> memory;
  DataType dtype;
  std::vector<int64_t> shape, strides;  ///< strides count elements
  int64_t byte_offset = 0;

  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype.bytes(); }
  bool is_compact() const;
  /// Returns the argument for kernels; valid while the array exists and its memory is not freed.
  DLTensor tensor() const;
};

/// The array that the object is, or null.
const DeviceArray* device_array_of(PyObject* object);

}  // namespace tilewright::python
