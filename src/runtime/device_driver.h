/* The interface between device.c, which handles tensors and calls, and the drivers of OpenCL and CUDA. */
#ifndef TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_
#define TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_

#include "runtime/device.h"

/* Functions that return int32_t return TW_OK, or the code of an error after reporting it. */
typedef struct tw_device_driver {
  /* Opens the driver and selects a device, once per process. The other functions require that it succeeded. */
  int32_t (*begin)(tw_ctx* ctx);
  /* Allocates at least one byte of device memory; returns NULL after reporting an error. */
  void* (*acquire)(tw_ctx* ctx, int64_t bytes);
  void (*release)(void* memory);
  /* Copies are synchronous. */
  int32_t (*upload)(tw_ctx* ctx, void* memory, const void* from, int64_t bytes);
  int32_t (*download)(tw_ctx* ctx, void* to, void* memory, int64_t bytes);
  /* Waits for all kernels. */
  int32_t (*finish)(tw_ctx* ctx);
  /* See tw_device_launch; the grid is not empty. */
  int32_t (*launch)(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                    const tw_device_argument* arguments, int32_t count);
} tw_device_driver;

/* Reports that the process was forked after the driver was opened. The driver's threads do not exist in the child, and
 * may have held locks at the fork, so a call could wait forever. */
int32_t tw_report_fork(tw_ctx* ctx, const char* driver);

/* Reports that a driver has no device: `problem` says why, `hint` what to do. */
int32_t tw_report_no_device(tw_ctx* ctx, const char* driver, const char* problem, const char* hint);

extern const tw_device_driver tw_opencl_driver, tw_cuda_driver;

#endif /* TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_ */
