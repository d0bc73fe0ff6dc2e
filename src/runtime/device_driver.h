/* The interface between device.c, which handles tensors and calls, and the drivers of OpenCL and CUDA. */
#ifndef TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_
#define TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_

#include "runtime/device.h"

/* A queue of a device, in whose order kernels and copies run: of this runtime or of a caller. Never freed. */
typedef struct tw_queue tw_queue;

/* Functions that return int32_t return TW_OK, or the code of an error after reporting it. */
typedef struct tw_device_driver {
  /* Opens the driver. Returns the queue of `device` (-1: the default device), or that of the caller's `stream` if it is
   * not NULL. Returns NULL after reporting an error. */
  tw_queue* (*queue_of)(tw_ctx* ctx, int32_t device, void* stream);
  /* Returns the native stream of the queue. */
  void* (*stream_of)(tw_queue* queue);
  /* Allocates at least one byte of device memory; returns NULL after reporting an error. */
  void* (*acquire)(tw_ctx* ctx, tw_queue* queue, int64_t bytes);
  /* Frees it when the commands that use it have finished. */
  void (*release)(tw_queue* queue, void* memory);
  /* Whether kernels in the queue can use the memory. */
  int (*can_use)(tw_queue* queue, void* memory);
  /* Synchronous copies. `download` reports kernels that failed before. */
  int32_t (*upload)(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, const void* from, int64_t bytes);
  int32_t (*download)(tw_ctx* ctx, tw_queue* queue, void* to, tw_device_pointer from, int64_t bytes);
  /* Asynchronous operations. */
  int32_t (*copy)(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, tw_device_pointer from, int64_t bytes);
  int32_t (*fill)(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, int byte, int64_t bytes);
  /* Submits the enqueued commands to the device. */
  void (*flush)(tw_queue* queue);
  /* Makes later commands of `after` wait for all earlier commands of `before`. Blocks the caller only if the streams of
   * the device have no events. */
  int32_t (*order)(tw_ctx* ctx, tw_queue* before, tw_queue* after);
  /* Waits for all kernels, and reports the first that failed. */
  int32_t (*finish)(tw_ctx* ctx, tw_queue* queue);
  /* See tw_device_launch; the grid is not empty. `function` is what the user calls, for messages. */
  int32_t (*launch)(tw_ctx* ctx, tw_queue* queue, const tw_device_image* image, const char* function,
                    const char* kernel, const int64_t* extents, const tw_device_argument* arguments, int32_t count);
  /* See tw_device_profile and tw_device_elapsed. */
  void (*profile)(void);
  int32_t (*elapsed)(tw_ctx* ctx, tw_queue* queue, double* seconds);
} tw_device_driver;

/* Reports that the process was forked after the driver was opened. The driver's threads do not exist in the child, and
 * may have held locks at the fork, so a call could wait forever. */
int32_t tw_report_fork(tw_ctx* ctx, const char* driver);

/* Reports that a driver has no device: `problem` says why, `hint` what to do. */
int32_t tw_report_no_device(tw_ctx* ctx, const char* driver, const char* problem, const char* hint);

/* Reports that there is no device of this number, but `count` others. */
int32_t tw_report_device_number(tw_ctx* ctx, const char* driver, int32_t device, int32_t count);

/* Programs that a driver has loaded. They stay loaded until the process ends. The lock of the driver is held. */
typedef struct tw_loaded_program {
  char* source;
  void *context, *device, *handle;
  struct tw_loaded_program* next;
} tw_loaded_program;

/* The handle of the program with this source; NULL: none is loaded. `device` is NULL where a context has one device. */
void* tw_find_program(const tw_loaded_program* programs, const void* context, const void* device, const char* source);

/* Adds a program to the list. After an error, which is reported, the caller unloads it. */
int32_t tw_keep_program(tw_ctx* ctx, tw_loaded_program** programs, void* context, void* device, const char* source,
                        void* handle);

/* ---- Assertions of kernels (device_checks.c) ---- */

/* The error word of the queue, for a kernel that is launched next; NULL, with an error reported, where there is none.
 */
tw_device_pointer* tw_error_word(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue);

/* Numbers the assertions of a kernel, from *first + 1. Their messages are kept until the process ends, once for all
 * launches of the kernel. */
int32_t tw_number_checks(tw_ctx* ctx, const char* function, const char* kernel, const tw_device_check* checks,
                         int32_t count, int32_t* first);

/* After a wait: reports an assertion that has failed, and forgets it. */
int32_t tw_report_failed_check(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue);

extern const tw_device_driver tw_opencl_driver, tw_cuda_driver;

#endif /* TILEWRIGHT_RUNTIME_DEVICE_DRIVER_H_ */
