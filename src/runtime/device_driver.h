/* What a kind of device does for tw_device_* (device.c), which looks after tensors and calls. */
#ifndef TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_
#define TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_

#include "runtime/device.h"

/* Functions that return int32_t return TW_OK, or the code of a failure that they have reported. */
typedef struct tw_device_driver {
  /* Opens the driver and chooses a device, once a process; what follows is called after it has succeeded. */
  int32_t (*begin)(tw_ctx* ctx);
  /* Memory of at least one byte; NULL, with an error reported, where there is none. */
  void* (*acquire)(tw_ctx* ctx, int64_t bytes);
  void (*release)(void* memory);
  /* Both return when the bytes are copied. */
  int32_t (*upload)(tw_ctx* ctx, void* memory, const void* from, int64_t bytes);
  int32_t (*download)(tw_ctx* ctx, void* to, void* memory, int64_t bytes);
  /* Waits for all kernels. */
  int32_t (*finish)(tw_ctx* ctx);
  /* As tw_device_launch, on a grid that is not empty. */
  int32_t (*launch)(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                    const tw_device_argument* arguments, int32_t count);
} tw_device_driver;

/* Reports that the process was forked from the one that opened the driver, whose threads have stayed there, perhaps
 * with locks in their hands: a call would wait for them forever. */
int32_t tw_report_fork(tw_ctx* ctx, const char* driver);

extern const tw_device_driver tw_opencl_driver, tw_cuda_driver;

#endif /* TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_ */
