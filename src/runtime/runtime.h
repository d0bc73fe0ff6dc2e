/* Runtime functions that generated code does not call directly: for the compiler, the loader and tests, and shared by
 * the files of this folder. */
#ifndef TILEWRIGHT_RUNTIME_RUNTIME_H_
#define TILEWRIGHT_RUNTIME_RUNTIME_H_

#include "runtime/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Parallel loops ------------------------------------------------------------------------------------------ */

/* The default of tw_ctx.parallel_for: one pool per process, started by the first loop that needs it. Loops within loops
 * run inline, and so does a loop for which all slots of the pool are taken by other threads. After fork() the child
 * starts a pool of its own.
 *
 * Environment, read once: TILEWRIGHT_NUM_THREADS, and TILEWRIGHT_SPIN_US, how long an idle thread looks for work before
 * it sleeps. */
int32_t tw_parallel_for(tw_ctx* ctx, tw_parallel_body body, void* closure, int64_t extent, int64_t grain);

/* Threads of the pool that exist now, without callers. */
int32_t tw_pool_size(void);

/* ---- Workspaces ---------------------------------------------------------------------------------------------- */

void* tw_workspace_acquire(tw_ctx* ctx, int64_t bytes);
void tw_workspace_release(tw_ctx* ctx, void* memory);

/* Bytes that the calling thread's workspaces occupy, in use or kept. */
int64_t tw_workspace_held(void);

/* ---- Signatures ---------------------------------------------------------------------------------------------- */

/* Whether the tables are consistent: kinds in range, symbols bound before use, counts right. Returns TW_OK, or
 * TW_ERROR_INTERNAL with the defect in `message`. For signatures from elsewhere (a loaded library) and for tests of
 * their producers; tw_check_args relies on it. */
int32_t tw_verify_signature(const tw_signature* signature, char* message, size_t size);

/* The entry for tensor parameter number `tensor`; NULL if there are fewer. */
const tw_param* tw_tensor_param(const tw_signature* signature, int32_t tensor);

/* "float32 (n, 4)", or "int32" for a scalar. */
void tw_describe_param(const tw_signature* signature, const tw_param* param, char* buffer, size_t size);

/* What one element occupies. Types of less than a byte take a byte each. */
static inline int64_t tw_element_bytes(DLDataType dtype) { return (int64_t)((dtype.bits + 7) / 8) * dtype.lanes; }

/* ---- What generated code may refer to ---------------------------------------------------------------------------- */

typedef struct tw_runtime_symbol {
  const char* name;
  void* address;
} tw_runtime_symbol;

const tw_runtime_symbol* tw_runtime_symbols(int32_t* count);

/* ---- Shared by the files of this folder -------------------------------------------------------------------------- */

/* Keeps the shared library that this code is part of loaded until the process ends: pool threads and thread-exit
 * handlers run its code. */
void tw_pin_library(void);

/* Whether the tensor is in memory that the processor reads: pinned memory is, too. */
static inline int tw_is_on_host(const DLTensor* tensor) {
  const int32_t device = (int32_t)tensor->device.device_type;
  return device == kDLCPU || device == kDLCUDAHost || device == kDLROCMHost;
}

/* Where a tensor begins: an address, or a byte offset in the memory of OpenCL, which has no addresses. */
static inline uintptr_t tw_begin_of(const DLTensor* tensor) {
  const int has_addresses = (int32_t)tensor->device.device_type != kDLOpenCL;
  return (has_addresses ? (uintptr_t)tensor->data : 0) + tensor->byte_offset;
}

/* Whether two tensors, neither empty, may share a byte. Exact for all but contrived strides, for which it answers 1. */
int tw_tensors_overlap(const DLTensor* a, const DLTensor* b);

/* Whether two different elements of one tensor may share a byte. */
int tw_tensor_overlaps_itself(const DLTensor* tensor);

/* The alignment that the address of the first element needs; a power of two. What is on the host is copied to a device,
 * to an address that suits every kernel, so there its elements alone have to be aligned. */
int32_t tw_required_alignment(const tw_signature* signature, const tw_param* param, const DLTensor* tensor);

/* `detail` of TW_ERROR_SIZE where it is not a value too wide for its symbol. */
enum { TW_DETAIL_TOO_LARGE = -1, TW_DETAIL_TOO_FAR_APART = -2 };

/* Formats and reports what tw_check_args found wrong. `code` is the verdict for tensor parameter `tensor`; `detail` is
 * the dimension for TW_ERROR_SHAPE and TW_ERROR_STRIDES, the other tensor for TW_ERROR_OVERLAP, and one of the above
 * for TW_ERROR_SIZE. Returns `code`. */
int32_t tw_explain_tensor(tw_ctx* ctx, const tw_signature* signature, const DLTensor* const* tensors,
                          const tw_scalar* scalars, int32_t code, int32_t tensor, int32_t detail);
int32_t tw_explain_features(tw_ctx* ctx, const tw_signature* signature);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_RUNTIME_RUNTIME_H_ */
