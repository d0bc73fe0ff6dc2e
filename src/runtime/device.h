/* What code around kernels of a device calls, and what callers with arrays on a device call: memory, copies, launches.
 *
 * A compiled function for a device is host code whose constants hold the program of the device. Its entry checks the
 * arguments as every entry does, and then
 *
 *     code = tw_device_enter(ctx, &image, &signature, tensors, data);    data[i] become pointers to device memory
 *     if (!code) code = NAME_body(ctx, data[0], ...);                    launches kernels on them
 *     return tw_device_leave(ctx, &image, &signature, tensors, data, code);
 *
 * Tensors of the host are copied to the device; the call waits for its kernels, and copies what they have written back.
 * Tensors of the device are used where they are. A call that has no others does not wait: kernels run in the order of
 * their calls, and what fails is reported by the next call that waits. */
#ifndef TILEWRIGHT_RUNTIME_DEVICE_H_
#define TILEWRIGHT_RUNTIME_DEVICE_H_

#include "runtime/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Beside those of tw_error. */
enum tw_device_error {
  TW_ERROR_NO_DEVICE = 7, /* no driver, no device, or one that lacks what the kernel needs */
  TW_ERROR_LAUNCH = 8     /* the device refused or failed to run a kernel */
};

/* The version of what follows, which generated code relies on. */
#define TW_DEVICE_VERSION 2

/* The program of a module for one kind of device: constant data of generated code. */
typedef struct tw_device_image {
  uint32_t version;    /* TW_DEVICE_VERSION */
  int32_t device_type; /* kDLOpenCL or kDLCUDA */
  const char* source;  /* text in the language of the device, ends with 0 */
  /* Binaries, terminated by NULL; the driver loads the first one that fits the device. NULL: there is only source. */
  const void* const* binaries;
} tw_device_image;

/* A position in memory of a device. Memory of OpenCL has no addresses, so its kernels get both parts. */
typedef struct tw_device_pointer {
  void* memory;   /* a cl_mem, or an address of CUDA */
  int64_t offset; /* bytes */
} tw_device_pointer;

/* One argument of a kernel: the address of a tw_device_pointer, or the bits of a number. */
typedef struct tw_device_argument {
  int64_t bytes; /* of the number; 0: `value` is the address of a tw_device_pointer */
  int64_t value;
} tw_device_argument;

/* Selects the device, that of the tensors or the default one, and puts the addresses of tw_device_pointer into `data`,
 * which holds what tw_check_args found. After a failure nothing is left on the device, and `data` must not be used. */
int32_t tw_device_enter(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data);

/* Where there are tensors of the host: waits for the device, copies what the function has written back, unless `code`
 * says that it failed, and releases the copies. Returns `code`, or the failure of its own. */
int32_t tw_device_leave(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data, int32_t code);

/* Memory of the device for intermediate results: the address of a tw_device_pointer; NULL, with an error reported,
 * where there is none. It is freed when the kernels that use it have finished. */
void* tw_device_acquire(tw_ctx* ctx, const tw_device_image* image, int64_t bytes);
void tw_device_release(tw_ctx* ctx, const tw_device_image* image, void* pointer);

/* Runs `kernel` on a grid of extents[0..2] blocks of extents[3..5] threads, x first. Each block has extents[6] bytes of
 * shared memory beside what the kernel declares. An empty grid runs nothing. */
int32_t tw_device_launch(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                         const tw_device_argument* arguments, int32_t count);

/* The message of an assertion of a kernel: `before`, and where `behind` is not NULL, a number of the kernel, `behind`.
 */
typedef struct tw_device_check {
  const char *before, *behind;
} tw_device_check;

/* tw_device_launch for a kernel with assertions, which has two parameters behind `arguments`: the error word of the
 * queue, two words of 64 bits, and the number of its first assertion, of 32 bits, less 1. A thread whose assertion
 * fails puts the number of the assertion into the first word, if that is 0, and the number of its message into the
 * second. The next wait reports it. */
int32_t tw_device_launch_checked(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                                 const tw_device_argument* arguments, int32_t count, const tw_device_check* checks,
                                 int32_t num_checks);

/* ---- For callers: arrays on a device -------------------------------------------------------------------------------
 * Functions that return int32_t return TW_OK, or the code of an error after reporting it. All use the context's stream
 * if it has one. Kernels and copies of one device run in the order in which they are called. */

/* Memory of the device; NULL, with an error reported, where there is none. */
void* tw_device_allocate(tw_ctx* ctx, DLDevice device, int64_t bytes);
/* Frees memory when the kernels and copies that use it have finished. */
void tw_device_free(DLDevice device, void* memory);
/* Copies between host and device, which wait until they are done. */
int32_t tw_device_upload(tw_ctx* ctx, DLDevice device, tw_device_pointer to, const void* from, int64_t bytes);
int32_t tw_device_download(tw_ctx* ctx, DLDevice device, void* to, tw_device_pointer from, int64_t bytes);
/* Within a device, without waiting. */
int32_t tw_device_copy(tw_ctx* ctx, DLDevice device, tw_device_pointer to, tw_device_pointer from, int64_t bytes);
int32_t tw_device_fill_zero(tw_ctx* ctx, DLDevice device, tw_device_pointer to, int64_t bytes);
/* Waits for all that was called before, and reports what failed of it. */
int32_t tw_device_wait(tw_ctx* ctx, DLDevice device);
/* The queue of the device, for the context of a call into another runtime; NULL after reporting an error, and where
 * queues need not be passed on. */
void* tw_device_stream(tw_ctx* ctx, DLDevice device);
/* What is called on stream `after` from now on waits for what was called on stream `before`; NULL is the queue of the
 * device. The calling thread waits only on devices whose streams cannot wait for one another. */
int32_t tw_device_order(tw_ctx* ctx, DLDevice device, void* before, void* after);
/* How many allocations of device memory exist in this process, those of calls in progress included. */
int64_t tw_device_count_memory(void);

/* Whether memory for intermediate results is filled with bytes of ones, a NaN in every format, instead of left as it
 * is. */
void tw_device_poison(int poisons);
/* From now on kernels note when they run; called before the first use of a device. */
void tw_device_profile(void);
/* Waits, and stores the seconds from the begin of the first kernel to the end of the last one since the last call. */
int32_t tw_device_elapsed(tw_ctx* ctx, DLDevice device, double* seconds);

/* ---- What devices there are ----------------------------------------------------------------------------------------
 */

/* Devices of OpenCL; -1 where there is no OpenCL, with the reason in `message`. */
int32_t tw_opencl_count(char* message, size_t size);
/* Describes device `index`: its name, version, platform and version of the driver on one line each. Returns 0 where
 * there is no such device. */
int32_t tw_opencl_describe(int32_t index, char* text, size_t size);
/* The default device: the first GPU, else the first device; -1 if there is none. */
int32_t tw_opencl_default(void);
/* The maximum number of threads of a block on device `index`, and its bytes of shared memory. Returns 0 if there is no
 * such device. */
int32_t tw_opencl_limits(int32_t index, int64_t* threads, int64_t* shared_bytes);

/* The same functions for CUDA; the lines are name, compute capability and driver version. */
int32_t tw_cuda_count(char* message, size_t size);
int32_t tw_cuda_describe(int32_t index, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_RUNTIME_DEVICE_H_ */
