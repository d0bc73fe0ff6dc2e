/* What code around kernels of a device calls: copies of arguments, memory of the device, launches.
 *
 * A compiled function for a device is host code whose constants hold the program of the device. Its entry checks the
 * arguments as every entry does, and then
 *
 *     code = tw_device_enter(ctx, &image, &signature, tensors, data);    data[i] become handles of device memory
 *     if (!code) code = NAME_body(ctx, data[0], ...);                    launches kernels on them
 *     return tw_device_leave(ctx, &image, &signature, tensors, data, code);
 *
 * so that outputs are in the caller's arrays when the call returns. */
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

/* The program of a module for one kind of device: constant data of generated code. */
typedef struct tw_device_image {
  uint32_t abi_version; /* TW_ABI_VERSION */
  int32_t device_type;  /* kDLOpenCL or kDLCUDA */
  const char* source;   /* text in the language of the device, ends with 0 */
  /* Binaries, terminated by NULL; the driver loads the first one that fits the device. NULL: there is only source. */
  const void* const* binaries;
} tw_device_image;

/* One argument of a kernel: a handle of device memory, or the bits of a number. */
typedef struct tw_device_argument {
  int64_t bytes; /* of the number; 0: `value` is a handle */
  int64_t value;
} tw_device_argument;

/* Copies the tensors to the device and puts handles of the copies into `data`, which holds what tw_check_args found.
 * After a failure nothing is left on the device, and `data` must not be used. */
int32_t tw_device_enter(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data);

/* Waits for the device, copies what the function has written back, unless `code` says that it failed, and releases the
 * copies. Returns `code`, or the failure of its own. */
int32_t tw_device_leave(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data, int32_t code);

/* Memory of the device for intermediate results; NULL, with an error reported, where there is none. */
void* tw_device_acquire(tw_ctx* ctx, const tw_device_image* image, int64_t bytes);
void tw_device_release(tw_ctx* ctx, const tw_device_image* image, void* memory);

/* Runs `kernel` on a grid of extents[0..2] blocks of extents[3..5] threads, x first. Each block has extents[6] bytes of
 * shared memory beside what the kernel declares. An empty grid runs nothing. */
int32_t tw_device_launch(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                         const tw_device_argument* arguments, int32_t count);

/* Devices of OpenCL; -1 where there is no OpenCL, with the reason in `message`. */
int32_t tw_opencl_count(char* message, size_t size);
/* Describes device `index`: its name, version and platform on one line each. Returns 0 where there is no such device.
 */
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
