/* Calls of functions with kernels: the part that is common to all device drivers. */
#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device_driver.h"
#include "runtime/runtime.h"

static const tw_device_driver* driver_of_type(int32_t type) {
  return type == kDLCUDA || type == kDLCUDAManaged ? &tw_cuda_driver : &tw_opencl_driver;
}
static const tw_device_driver* driver_of(const tw_device_image* image) { return driver_of_type(image->device_type); }

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

int32_t tw_report_device_number(tw_ctx* ctx, const char* driver, int32_t device, int32_t count) {
  char message[256];
  snprintf(message, sizeof message,
           "there is no %s device %d: devices are numbered from 0, and there %s %d" TW_HINT_PREFIX
           "tilewright info lists them",
           driver, device, count == 1 ? "is" : "are", count);
  return tw_report(ctx, TW_ERROR_NO_DEVICE, message);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static int64_t allocations; /* that exist */

static void* acquire(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue, int64_t bytes) {
  void* memory = driver->acquire(ctx, queue, bytes);
  if (memory) __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  return memory;
}

static void release(const tw_device_driver* driver, tw_queue* queue, void* memory) {
  driver->release(queue, memory);
  __atomic_fetch_sub(&allocations, 1, __ATOMIC_RELAXED);
}

int64_t tw_device_count_memory(void) { return __atomic_load_n(&allocations, __ATOMIC_RELAXED); }

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* A context of a caller that was compiled before there were devices has no room for the queue. */
static int has_device_part(const tw_ctx* ctx) {
  return ctx->struct_size >= offsetof(tw_ctx, device_queue) + sizeof(ctx->device_queue);
}

/* The function that this thread calls, for messages. */
static __thread const char* function_of_call = "";

/* The queue of the call in progress. */
static tw_queue* queue_of_call(tw_ctx* ctx, const tw_device_image* image) {
  if (has_device_part(ctx) && ctx->device_queue) return ctx->device_queue;
  return driver_of(image)->queue_of(ctx, -1, NULL);
}

/* Waits for the kernels of the queue, and reports what failed of them. */
static int32_t finish(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue) {
  const int32_t code = driver->finish(ctx, queue);
  return code ? code : tw_report_failed_check(ctx, driver, queue);
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

/* Bytes from what the body indexes from to the end of the last element; -1 where elements are stored before it. */
static int64_t span_bytes(const DLTensor* tensor, const tw_param* param) {
  int64_t element = tw_element_bytes(tensor->dtype), last = 0, contiguous = 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (tensor->shape[d] <= 0) return 0;
  }
  for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
    int64_t stride = tensor->strides ? tensor->strides[d] : contiguous;
    if (stride < 0 && tensor->shape[d] > 1) return -1;
    last += (tensor->shape[d] - 1) * stride;
    contiguous *= tensor->shape[d];
  }
  int64_t bytes = (last + 1) * element;
  return indexes_from_data(param) ? bytes + (int64_t)tensor->byte_offset : bytes;
}

/* Releases what was copied of the first `count` tensors, and the pointers. */
static void release_copies(const tw_device_driver* driver, tw_queue* queue, const DLTensor* const* tensors, void** data,
                           int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (tw_is_on_host(tensors[i])) release(driver, queue, ((tw_device_pointer*)data[i])->memory);
  }
  if (count > 0) free(data[0]);
}

/* The first tensor that is on a device; NULL if there is none. */
static const DLTensor* first_on_device(const tw_signature* signature, const DLTensor* const* tensors) {
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    if (!tw_is_on_host(tensors[i])) return tensors[i];
  }
  return NULL;
}

static int has_host_tensors(const tw_signature* signature, const DLTensor* const* tensors) {
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    if (tw_is_on_host(tensors[i])) return 1;
  }
  return 0;
}

/* Copies a tensor of the host to new memory. */
static int32_t copy_to_device(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue, const tw_param* param,
                              const DLTensor* tensor, const void* from, tw_device_pointer* to) {
  int64_t bytes = span_bytes(tensor, param);
  if (bytes < 0) {
    return tw_report(ctx, TW_ERROR_STRIDES, "an argument has negative strides, and cannot be copied to the device");
  }
  *to = (tw_device_pointer){acquire(ctx, driver, queue, bytes), 0};
  if (!to->memory) return TW_ERROR_MEMORY;
  int32_t code = bytes > 0 ? driver->upload(ctx, queue, *to, from, bytes) : TW_OK;
  if (code) release(driver, queue, to->memory);
  return code;
}

/* Stores the elements of a tensor, which are at the same distances in `from`, and nothing between them: other
 * arguments, or other threads, may have written there meanwhile. */
static void store_elements(const DLTensor* tensor, char* to, const char* from) {
  const int64_t element = tw_element_bytes(tensor->dtype);
  int64_t index[tensor->ndim + 1], steps[tensor->ndim + 1];
  int64_t compact = element;
  for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
    index[d] = 0;
    if (tensor->shape[d] == 1) {
      steps[d] = 0; /* its stride may be any number */
    } else {
      steps[d] = tensor->strides ? tensor->strides[d] * element : compact;
    }
    compact *= tensor->shape[d];
  }
  int64_t at = 0;
  for (int32_t d = 0; d >= 0;) {
    memcpy(to + at, from + at, (size_t)element);
    for (d = tensor->ndim - 1; d >= 0; --d) {
      at += steps[d];
      if (++index[d] < tensor->shape[d]) break;
      at -= index[d] * steps[d];
      index[d] = 0;
    }
  }
}

/* Copies what a function has written to a tensor of the host back from its copy on the device. */
static int32_t copy_from_device(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue, const tw_param* param,
                                const DLTensor* tensor, tw_device_pointer from) {
  const int64_t bytes = span_bytes(tensor, param);
  if (bytes <= 0) return TW_OK;
  const int64_t first = indexes_from_data(param) ? (int64_t)tensor->byte_offset : 0; /* element in the copy */
  char* begin = (char*)tensor->data + tensor->byte_offset;
  int64_t all = tw_element_bytes(tensor->dtype);
  for (int32_t d = 0; d < tensor->ndim; ++d) all *= tensor->shape[d];
  if (bytes == all) return driver->download(ctx, queue, begin, from, bytes);
  char* staged = malloc((size_t)bytes);
  if (!staged) return tw_report(ctx, TW_ERROR_MEMORY, "no memory for a result on its way from the device");
  const int32_t code = driver->download(ctx, queue, staged, from, bytes);
  if (code == TW_OK) store_elements(tensor, begin, staged + first);
  free(staged);
  return code;
}

/* Uses a tensor of the device where it is. */
static int32_t use_memory(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue, const tw_param* param,
                          const DLTensor* tensor, tw_device_pointer* to) {
  *to = (tw_device_pointer){tensor->data, indexes_from_data(param) ? 0 : (int64_t)tensor->byte_offset};
  if (!tensor->data || driver->can_use(queue, tensor->data)) return TW_OK;
  char message[512];
  snprintf(message, sizeof message,
           "argument %s is in memory of another context of the device than the kernel runs in" TW_HINT_PREFIX
           "pass the queue of the memory as stream of the context of the call",
           param->name);
  return tw_report(ctx, TW_ERROR_DEVICE, message);
}

int32_t tw_device_enter(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data) {
  const DLTensor* on_device = first_on_device(signature, tensors);
  if (image->version != TW_DEVICE_VERSION || (on_device && !has_device_part(ctx))) {
    return tw_report(
        ctx, TW_ERROR_ABI,
        "the kernel and its caller were built for different versions of the kernel interface" TW_HINT_PREFIX
        "compile the kernel again, and its caller with the header written beside it");
  }
  const tw_device_driver* driver = driver_of(image);
  tw_queue* queue = driver->queue_of(ctx, on_device ? on_device->device.device_id : -1, ctx->stream);
  if (!queue) return TW_ERROR_NO_DEVICE;
  if (has_device_part(ctx)) ctx->device_queue = queue;
  function_of_call = signature->name;
  tw_device_pointer* pointers = malloc((size_t)(signature->num_tensors + 1) * sizeof *pointers);
  if (!pointers) return tw_report(ctx, TW_ERROR_MEMORY, "no memory for the arguments of a call");
  int32_t code = TW_OK;
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    const tw_param* param = tensor_param(signature, i);
    code = tw_is_on_host(tensors[i]) ? copy_to_device(ctx, driver, queue, param, tensors[i], data[i], &pointers[i])
                                     : use_memory(ctx, driver, queue, param, tensors[i], &pointers[i]);
    if (code) {
      release_copies(driver, queue, tensors, data, i);
      if (i == 0) free(pointers);
      return code;
    }
    data[i] = &pointers[i];
  }
  if (signature->num_tensors == 0) free(pointers);
  return TW_OK;
}

int32_t tw_device_leave(tw_ctx* ctx, const tw_device_image* image, const tw_signature* signature,
                        const DLTensor* const* tensors, void** data, int32_t code) {
  const tw_device_driver* driver = driver_of(image);
  tw_queue* queue = queue_of_call(ctx, image);
  if (has_device_part(ctx)) ctx->device_queue = NULL;
  if (!queue) return code ? code : TW_ERROR_NO_DEVICE;
  if (has_host_tensors(signature, tensors)) {
    int32_t finished = finish(ctx, driver, queue);
    if (!code) code = finished;
  } else {
    driver->flush(queue);
  }
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    const tw_param* param = tensor_param(signature, i);
    const DLTensor* tensor = tensors[i];
    if (code || !tw_is_on_host(tensor) || !(param->flags & TW_PARAM_WRITTEN)) continue;
    code = copy_from_device(ctx, driver, queue, param, tensor, *(tw_device_pointer*)data[i]);
  }
  release_copies(driver, queue, tensors, data, signature->num_tensors);
  return code;
}

static int poisons_workspaces;
void tw_device_poison(int poisons) { poisons_workspaces = poisons; }

void* tw_device_acquire(tw_ctx* ctx, const tw_device_image* image, int64_t bytes) {
  const tw_device_driver* driver = driver_of(image);
  tw_queue* queue = queue_of_call(ctx, image);
  tw_device_pointer* pointer = queue ? malloc(sizeof *pointer) : NULL;
  if (!pointer) return NULL;
  *pointer = (tw_device_pointer){acquire(ctx, driver, queue, bytes), 0};
  if (!pointer->memory) {
    free(pointer);
    return NULL;
  }
  if (poisons_workspaces && bytes > 0) driver->fill(ctx, queue, *pointer, 0xff, bytes);
  return pointer;
}

void tw_device_release(tw_ctx* ctx, const tw_device_image* image, void* pointer) {
  if (!pointer) return;
  release(driver_of(image), queue_of_call(ctx, image), ((tw_device_pointer*)pointer)->memory);
  free(pointer);
}

int32_t tw_device_launch(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                         const tw_device_argument* arguments, int32_t count) {
  for (int d = 0; d < 6; ++d) {
    if (extents[d] <= 0) return TW_OK;
  }
  tw_queue* queue = queue_of_call(ctx, image);
  return queue ? driver_of(image)->launch(ctx, queue, image, function_of_call, kernel, extents, arguments, count)
               : TW_ERROR_NO_DEVICE;
}

int32_t tw_device_launch_checked(tw_ctx* ctx, const tw_device_image* image, const char* kernel, const int64_t* extents,
                                 const tw_device_argument* arguments, int32_t count, const tw_device_check* checks,
                                 int32_t num_checks) {
  tw_queue* queue = queue_of_call(ctx, image);
  if (!queue) return TW_ERROR_NO_DEVICE;
  int32_t first = 0;
  int32_t code = tw_number_checks(ctx, function_of_call, kernel, checks, num_checks, &first);
  if (code) return code;
  const tw_device_pointer* word = tw_error_word(ctx, driver_of(image), queue);
  if (!word) return TW_ERROR_MEMORY;
  tw_device_argument* all = malloc((size_t)(count + 2) * sizeof *all);
  if (!all) return tw_report(ctx, TW_ERROR_MEMORY, "no memory for the arguments of a kernel");
  if (count > 0) memcpy(all, arguments, (size_t)count * sizeof *all);
  all[count] = (tw_device_argument){0, (int64_t)(uintptr_t)word};
  all[count + 1] = (tw_device_argument){sizeof first, first};
  code = tw_device_launch(ctx, image, kernel, extents, all, count + 2);
  free(all);
  return code;
}

/* ---- Arrays of callers ------------------------------------------------------------------------------------------- */

static tw_queue* queue_of_device(tw_ctx* ctx, DLDevice device) {
  ctx->error_code = TW_OK;
  return driver_of_type(device.device_type)->queue_of(ctx, device.device_id, ctx->stream);
}

void* tw_device_allocate(tw_ctx* ctx, DLDevice device, int64_t bytes) {
  tw_queue* queue = queue_of_device(ctx, device);
  return queue ? acquire(ctx, driver_of_type(device.device_type), queue, bytes) : NULL;
}

void tw_device_free(DLDevice device, void* memory) {
  tw_ctx ctx;
  tw_ctx_init(&ctx);
  tw_queue* queue = queue_of_device(&ctx, device);
  if (queue) release(driver_of_type(device.device_type), queue, memory);
}

int32_t tw_device_upload(tw_ctx* ctx, DLDevice device, tw_device_pointer to, const void* from, int64_t bytes) {
  tw_queue* queue = queue_of_device(ctx, device);
  if (!queue) return TW_ERROR_NO_DEVICE;
  return bytes > 0 ? driver_of_type(device.device_type)->upload(ctx, queue, to, from, bytes) : TW_OK;
}

int32_t tw_device_download(tw_ctx* ctx, DLDevice device, void* to, tw_device_pointer from, int64_t bytes) {
  tw_queue* queue = queue_of_device(ctx, device);
  if (!queue) return TW_ERROR_NO_DEVICE;
  if (bytes <= 0) return TW_OK;
  const tw_device_driver* driver = driver_of_type(device.device_type);
  const int32_t code = driver->download(ctx, queue, to, from, bytes); /* waits for the kernels before */
  return code ? code : tw_report_failed_check(ctx, driver, queue);
}

int32_t tw_device_copy(tw_ctx* ctx, DLDevice device, tw_device_pointer to, tw_device_pointer from, int64_t bytes) {
  tw_queue* queue = queue_of_device(ctx, device);
  if (!queue) return TW_ERROR_NO_DEVICE;
  return bytes > 0 ? driver_of_type(device.device_type)->copy(ctx, queue, to, from, bytes) : TW_OK;
}

int32_t tw_device_fill_zero(tw_ctx* ctx, DLDevice device, tw_device_pointer to, int64_t bytes) {
  tw_queue* queue = queue_of_device(ctx, device);
  if (!queue) return TW_ERROR_NO_DEVICE;
  return bytes > 0 ? driver_of_type(device.device_type)->fill(ctx, queue, to, 0, bytes) : TW_OK;
}

int32_t tw_device_wait(tw_ctx* ctx, DLDevice device) {
  tw_queue* queue = queue_of_device(ctx, device);
  return queue ? finish(ctx, driver_of_type(device.device_type), queue) : TW_ERROR_NO_DEVICE;
}

int32_t tw_device_order(tw_ctx* ctx, DLDevice device, void* before, void* after) {
  ctx->error_code = TW_OK;
  const tw_device_driver* driver = driver_of_type(device.device_type);
  tw_queue* first = driver->queue_of(ctx, device.device_id, before);
  tw_queue* second = first ? driver->queue_of(ctx, device.device_id, after) : NULL;
  if (!second) return TW_ERROR_NO_DEVICE;
  return first == second ? TW_OK : driver->order(ctx, first, second);
}

void* tw_device_stream(tw_ctx* ctx, DLDevice device) {
  const tw_device_driver* driver = driver_of_type(device.device_type);
  tw_queue* queue = driver->queue_of(ctx, device.device_id, NULL);
  return queue ? driver->stream_of(queue) : NULL;
}

void tw_device_profile(void) {
  tw_opencl_driver.profile();
  tw_cuda_driver.profile();
}

int32_t tw_device_elapsed(tw_ctx* ctx, DLDevice device, double* seconds) {
  tw_queue* queue = queue_of_device(ctx, device);
  if (!queue) return TW_ERROR_NO_DEVICE;
  const tw_device_driver* driver = driver_of_type(device.device_type);
  const int32_t code = driver->elapsed(ctx, queue, seconds);
  return code ? code : tw_report_failed_check(ctx, driver, queue);
}
