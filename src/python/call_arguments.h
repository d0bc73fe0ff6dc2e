// From Python objects to what a kernel takes. Plain CPython: three arrays have to pass in well under a microsecond.
#pragma once

#include <Python.h>

#include <memory>
#include <string>

#include "runtime/runtime.h"

namespace tilewright::python {

/// One tensor argument while the call lasts. `tensor` borrows from what `release` gives back.
struct TensorArgument {
  static constexpr int kInlineDims = 8;

  DLTensor tensor;
  Py_buffer view;                     ///< valid when view.obj is set
  PyObject* owner;                    ///< a DLPack capsule, or null
  DLManagedTensorVersioned* managed;  ///< to be given back to its producer, or null
  int64_t* heap_strides;              ///< for more than kInlineDims dimensions, or null
  int64_t strides[kInlineDims];

  /// Before anything else; nothing of the above is initialized by a constructor, for speed.
  void clear() {
    view.obj = nullptr;
    owner = nullptr;
    managed = nullptr;
    heap_strides = nullptr;
  }
  void release() {
    if (view.obj) PyBuffer_Release(&view);
    Py_XDECREF(owner);
    if (managed && managed->deleter) managed->deleter(managed);
    delete[] heap_strides;
  }
};

/// Sets the Python error for a refused argument: "NAME: argument PARAM: WHAT". Returns false.
bool refuse(const tw_signature* signature, const tw_param* param, int32_t code, const std::string& what,
            const std::string& hint = {});
/// "float32 (n, 4)"
std::string describe(const tw_signature* signature, const tw_param* param);

/// False with a Python error set. dtype, shape and the rest are left to the kernel's own check.
bool read_tensor(PyObject* object, const tw_signature* signature, const tw_param* param, TensorArgument& argument);
/// The stream of CUDA that the library of a tensor works on, and its device; false where the tensor is not on such a
/// device, or the library does not say. No Python error is left.
bool find_stream(PyObject* object, DLDevice& device, void*& stream);
bool read_scalar(PyObject* object, const tw_signature* signature, const tw_param* param, tw_scalar& scalar);

/// Whether the object is of NumPy's class of arrays with a mask, or one derived from it.
bool is_masked_array(PyObject* object);

/// Sets the Python error for a code and message of a kernel.
void raise_kernel_error(int32_t code, std::string message);

}  // namespace tilewright::python
