/* Calls of functions with kernels: the part that is common to all device drivers. */
#include "runtime/device.h"

#include <stdio.h>

#include "runtime/device_driver.h"
#include "runtime/runtime.h"

static const tw_device_driver* driver_of(const tw_device_image* image) {
  return image->device_type == kDLCUDA ? &tw_cuda_driver : &tw_opencl_driver;
}

int32_t tw_report_fork(tw_ctx* ctx, const char* driver) {
  char message[512];
  snprintf(
      message, sizeof message,
      "this process was forked from one that had opened the driver of %s, which does not work after that" TW_HINT_PREFIX
      "start processes with multiprocessing's method \"spawn\", or fork before the first kernel is "
      "called and before devices are listed",
      driver);
  return tw_report(ctx, TW_ERROR_NO_DEVICE, message);
}

int32_t tw_report_no_device(tw_ctx* ctx, const char* driver, const char* problem, const char* hint) {
  char message[1024];
  snprintf(message, sizeof message, "there is no %s device: %s" TW_HINT_PREFIX "%s", driver, problem, hint);
  return tw_report(ctx, TW_ERROR_NO_DEVICE, message);
}

void* tw_device_acquire(tw_ctx* ctx, const tw_device_image* image, int64_t bytes) {
  const tw_device_driver* driver = driver_of(image);
  return driver->begin(ctx) == TW_OK ? driver->acquire(ctx, bytes) : NULL;
}

void tw_device_release(tw_ctx* ctx, const tw_device_image* image, void* memory) {
  (void)ctx;
  if (memory) driver_of(image)->release(memory);
}

/* The parameter that takes tensor number `position`. */
static const tw_param* tensor_param(const tw_signature* signature, int32_t position) {
  for (int32_t i = 0; i < signature->num_params; ++i) {
    if (signature->params[i].kind == TW_PARAM_TENSOR && position-- == 0) return &signature->params[i];
  }
  return NULL;
}

/* Whether indices are relative to the data pointer, with the byte offset as a separate parameter. */
static int indexes_from_data(const tw_param* param) {
  return param->elem_offset.kind != TW_DIM_CONSTANT || param->elem_offset.value != 0;
}

/* Bytes from what the body indexes from to the end of the last element; -1 where elements lie before it. */
static int64_t span_bytes(const DLTensor* tensor, const tw_param* param) {
  int64_t element = tw_element_bytes(tensor->dtype), last = 0, contiguous = 1;
  for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
    if (tensor->shape[d] <= 0) return 0;
    int64_t stride = tensor->strides ? tensor->strides[d] : contiguous;
    if (stride < 0 && tensor->shape[d] > 1) return -1;
    last += (tensor->shape[d] - 1) * stride;
    contiguous *= tensor->shape[d];
  }
  int64_t bytes = (last + 1) * element;
  return indexes_from_data(param) ? bytes + (int64_t)tensor->byte_offset : bytes;
}

static void release_all(const tw_device_driver* driver, void** data, int32_t count) {
  for (int32_t i = 0; i < count; ++i) driver->release(data[i]);
}

int32_t tw_device_enter(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data) {
  const tw_device_driver* driver = driver_of(image);
  int32_t code = driver->begin(ctx);
  if (code) return code;
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    int64_t bytes = span_bytes(tensors[i], tensor_param(signature, i));
    void* memory = NULL;
    if (bytes < 0) {
      code = tw_report(ctx, TW_ERROR_STRIDES, "an argument has negative strides, and cannot be copied to the device");
    } else {
      memory = driver->acquire(ctx, bytes);
      if (!memory) code = TW_ERROR_MEMORY;
    }
    if (!code && bytes > 0) {
      code = driver->upload(ctx, memory, data[i], bytes);
      if (code) driver->release(memory);
    }
    if (code) {
      release_all(driver, data, i);
      return code;
    }
    data[i] = memory;
  }
  return TW_OK;
}

int32_t tw_device_leave(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data, int32_t code) {
  const tw_device_driver* driver = driver_of(image);
  int32_t finished = driver->finish(ctx);
  if (!code) code = finished;
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    const tw_param* param = tensor_param(signature, i);
    const DLTensor* tensor = tensors[i];
    int64_t bytes = span_bytes(tensor, param);
    if (!code && (param->flags & TW_PARAM_WRITTEN) && bytes > 0) {
      char* begin = (char*)tensor->data + (indexes_from_data(param) ? 0 : tensor->byte_offset);
      code = driver->download(ctx, begin, data[i], bytes);
    }
  }
  release_all(driver, data, signature->num_tensors);
  return code;
}

int32_t tw_device_launch(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                         const tw_device_argument* arguments, int32_t count) {
  for (int d = 0; d < 6; ++d) {
    if (extents[d] <= 0) return TW_OK;
  }
  const tw_device_driver* driver = driver_of(image);
  int32_t code = driver->begin(ctx);
  return code ? code : driver->launch(ctx, image, kernel, extents, arguments, count);
}
