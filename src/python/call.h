// Kernels as Python callables.
#pragma once

#include <Python.h>

#include "runtime/abi.h"

namespace tilewright::python {

/// A `KernelBase` that calls `entry` with arguments converted as `signature` says: arrays of NumPy and ml_dtypes,
/// anything with a buffer or with `__dlpack__`, Python and NumPy numbers. The call releases the GIL and returns None.
///
/// `keep_alive` owns what the pointers refer to; may be null. `user` stands in the context's field of that name during
/// the call. Returns a new reference, or null with a Python error set. A signature that is not consistent is a defect.
PyObject* make_callable(tw_kernel entry, const tw_signature* signature, PyObject* keep_alive, void* user = nullptr);

}  // namespace tilewright::python
