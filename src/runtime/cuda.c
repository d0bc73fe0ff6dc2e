/* The driver of CUDA devices. libcuda is opened at the first use. Kernels run in the primary context of a device, which
 * other libraries of the process, such as PyTorch, also use, and on the caller's stream or the legacy default stream.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/device_driver.h"
#include "runtime/runtime.h"

/* ---- The part of the driver's interface that is used here: names and values are those of its public header ------- */

typedef int cu_result;
typedef struct cu_object* cu_handle; /* contexts, modules, functions, streams */
typedef uint64_t cu_pointer;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_EVENT_DISABLE_TIMING = 2
};

/* Name here, symbol in the library, parameters. */
#define TW_CUDA_FUNCTIONS(X)                                                                                      \
  X(initialize, cuInit, (unsigned))                                                                               \
  X(version, cuDriverGetVersion, (int*))                                                                          \
  X(count_devices, cuDeviceGetCount, (int*))                                                                      \
  X(get_device, cuDeviceGet, (int*, int))                                                                         \
  X(device_name, cuDeviceGetName, (char*, int, int))                                                              \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, int))                                                     \
  X(retain_context, cuDevicePrimaryCtxRetain, (cu_handle*, int))                                                  \
  X(push_context, cuCtxPushCurrent_v2, (cu_handle))                                                               \
  X(pop_context, cuCtxPopCurrent_v2, (cu_handle*))                                                                \
  X(synchronize, cuStreamSynchronize, (cu_handle))                                                                \
  X(load_module, cuModuleLoadData, (cu_handle*, const void*))                                                     \
  X(get_function, cuModuleGetFunction, (cu_handle*, cu_handle, const char*))                                      \
  X(set_attribute, cuFuncSetAttribute, (cu_handle, int, int))                                                     \
  X(launch_kernel, cuLaunchKernel,                                                                                \
    (cu_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_handle, void**, void**)) \
  X(allocate, cuMemAlloc_v2, (cu_pointer*, size_t))                                                               \
  X(free_memory, cuMemFree_v2, (cu_pointer))                                                                      \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, (cu_pointer, const void*, size_t, cu_handle))                           \
  X(copy_to_host, cuMemcpyDtoH_v2, (void*, cu_pointer, size_t))                                                   \
  X(copy_on_device, cuMemcpyDtoDAsync_v2, (cu_pointer, cu_pointer, size_t, cu_handle))                            \
  X(fill_bytes, cuMemsetD8Async, (cu_pointer, unsigned char, size_t, cu_handle))                                  \
  X(create_event, cuEventCreate, (cu_handle*, unsigned))                                                          \
  X(record_event, cuEventRecord, (cu_handle, cu_handle))                                                          \
  X(event_milliseconds, cuEventElapsedTime, (float*, cu_handle, cu_handle))                                       \
  X(destroy_event, cuEventDestroy_v2, (cu_handle))                                                                \
  X(wait_for_event, cuStreamWaitEvent, (cu_handle, cu_handle, unsigned))                                          \
  X(error_name, cuGetErrorName, (cu_result, const char**))

struct tw_queue {
  int32_t device;
  cu_handle stream, context;
  cu_handle begin, end; /* events around the kernels since the last look at the time; NULL: none were launched */
  int is_timing;
  char last[160]; /* function and kernel that were launched last; empty: none since the last wait */
  struct tw_queue* next;
};

static struct {
#define X(name, symbol, parameters) cu_result(*name) parameters;
  TW_CUDA_FUNCTIONS(X)
#undef X
  int count;     /* -1: there is no driver */
  pid_t process; /* that opened it */
  tw_queue* queues;
  int profiles;
  tw_loaded_program* programs; /* modules */
  char problem[512];
} cuda;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below `count` */

static const char* name_of(cu_result error) {
  const char* name = NULL;
  return cuda.error_name(error, &name) == CUDA_SUCCESS && name ? name : "an unknown error";
}

static void open_library(void) {
  cuda.count = -1;
  cuda.process = getpid();
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    snprintf(cuda.problem, sizeof cuda.problem, "libcuda.so.1 cannot be opened");
    return;
  }
#define X(name, symbol, parameters)                                                             \
  cuda.name = (cu_result(*) parameters)dlsym(library, #symbol);                                 \
  if (!cuda.name) {                                                                             \
    snprintf(cuda.problem, sizeof cuda.problem, "the driver of CUDA has no function " #symbol); \
    return;                                                                                     \
  }
  TW_CUDA_FUNCTIONS(X)
#undef X
  cu_result error = cuda.initialize(0);
  int count = 0;
  if (error == CUDA_SUCCESS) error = cuda.count_devices(&count);
  if (error == CUDA_SUCCESS) {
    cuda.count = count;
  } else {
    snprintf(cuda.problem, sizeof cuda.problem, "the driver of CUDA reports %s", name_of(error));
  }
}

int32_t tw_cuda_count(char* message, size_t size) {
  pthread_once(&opened, open_library);
  if (message && size) snprintf(message, size, "%s", cuda.problem);
  return cuda.count;
}

int32_t tw_cuda_describe(int32_t index, char* text, size_t size) {
  if (index < 0 || index >= tw_cuda_count(NULL, 0)) return 0;
  if (cuda.process != getpid()) return 0; /* the driver answers nothing after a fork */
  char name[256] = "";
  int version = 0, major = 0, minor = 0, device = 0;
  cuda.get_device(&device, index);
  cuda.device_name(name, (int)sizeof name - 1, device);
  cuda.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  cuda.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  cuda.version(&version);
  snprintf(text, size, "%s\ncompute capability %d.%d\ndriver for CUDA %d.%d", name, major, minor, version / 1000,
           version % 1000 / 10);
  return 1;
}

static int32_t fail(tw_ctx* ctx, int32_t code, const char* what, cu_result error) {
  char message[256];
  snprintf(message, sizeof message, "%s: CUDA reports %s", what, name_of(error));
  return tw_report(ctx, code, message);
}

/* Called with the lock held. */
static tw_queue* find_or_make(tw_ctx* ctx, int32_t device, cu_handle stream) {
  for (tw_queue* known = cuda.queues; known; known = known->next) {
    if (known->device == device && known->stream == stream) return known;
  }
  tw_queue* made = calloc(1, sizeof *made);
  if (!made) {
    tw_report(ctx, TW_ERROR_MEMORY, "no memory for the queue of a device");
    return NULL;
  }
  int handle = 0;
  cu_result error = cuda.get_device(&handle, device);
  if (error == CUDA_SUCCESS) error = cuda.retain_context(&made->context, handle);
  if (error != CUDA_SUCCESS) {
    free(made);
    fail(ctx, TW_ERROR_NO_DEVICE, "no context for the device", error);
    return NULL;
  }
  made->device = device;
  made->stream = stream;
  made->next = cuda.queues;
  cuda.queues = made;
  return made;
}

static tw_queue* queue_of(tw_ctx* ctx, int32_t device, void* stream) {
  if (tw_cuda_count(NULL, 0) <= 0) {
    tw_report_no_device(
        ctx, "CUDA", cuda.count < 0 ? cuda.problem : "the driver lists none",
        "kernels for CUDA run on machines with an NVIDIA GPU and its driver; compiling and exporting need neither");
    return NULL;
  }
  if (cuda.process != getpid()) {
    tw_report_fork(ctx, "CUDA");
    return NULL;
  }
  if (device < 0) device = 0;
  if (device >= cuda.count) {
    tw_report_device_number(ctx, "CUDA", device, cuda.count);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  tw_queue* queue = find_or_make(ctx, device, (cu_handle)stream);
  pthread_mutex_unlock(&lock);
  return queue;
}

static void* stream_of(tw_queue* queue) { return queue->stream; }

/* Each use of the device is enclosed in these, so that the caller's current context does not change. */
static void enter(const tw_queue* queue) { cuda.push_context(queue->context); }
static void leave(void) {
  cu_handle ignored;
  cuda.pop_context(&ignored);
}

static cu_pointer address_of(const tw_device_pointer* pointer) {
  return (cu_pointer)(uintptr_t)pointer->memory + (cu_pointer)pointer->offset;
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static int32_t finish(tw_ctx* ctx, tw_queue* queue) {
  /* CUDA cannot stop a kernel, so from here on a second Ctrl-C ends the process. */
  if (tw_interrupted(ctx) != TW_OK) return TW_ERROR_INTERRUPTED;
  enter(queue);
  cu_result error = cuda.synchronize(queue->stream);
  leave();
  char last[sizeof queue->last], message[256];
  pthread_mutex_lock(&lock);
  memcpy(last, queue->last, sizeof last);
  queue->last[0] = '\0';
  pthread_mutex_unlock(&lock);
  if (error == CUDA_SUCCESS) return TW_OK;
  snprintf(message, sizeof message, "%s failed on the device", last[0] ? last : "a kernel");
  return fail(ctx, TW_ERROR_LAUNCH, message, error);
}

static void flush(tw_queue* queue) { (void)queue; }

static int32_t order(tw_ctx* ctx, tw_queue* before, tw_queue* after) {
  cu_handle event = NULL;
  enter(before);
  cu_result error = cuda.create_event(&event, CU_EVENT_DISABLE_TIMING);
  if (error == CUDA_SUCCESS) {
    error = cuda.record_event(event, before->stream);
    if (error == CUDA_SUCCESS) error = cuda.wait_for_event(after->stream, event, 0);
    cuda.destroy_event(event); /* freed when it has happened */
  }
  leave();
  return error == CUDA_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "a stream cannot wait for another one", error);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void* acquire(tw_ctx* ctx, tw_queue* queue, int64_t bytes) {
  cu_pointer memory = 0;
  enter(queue);
  /* CUDA does not allocate 0 bytes. */
  cu_result error = cuda.allocate(&memory, (size_t)(bytes > 0 ? bytes : 1));
  leave();
  if (error == CUDA_SUCCESS) return (void*)(uintptr_t)memory;
  char message[128];
  snprintf(message, sizeof message, "no memory for %lld bytes on the device: CUDA reports %s", (long long)bytes,
           name_of(error));
  tw_report(ctx, TW_ERROR_MEMORY, message);
  return NULL;
}

/* cuMemFree waits for what was launched before. */
static void release(tw_queue* queue, void* memory) {
  enter(queue);
  cuda.free_memory((cu_pointer)(uintptr_t)memory);
  leave();
}

/* Addresses are the same in all contexts. */
static int can_use(tw_queue* queue, void* memory) {
  (void)queue;
  (void)memory;
  return 1;
}

static int32_t upload(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, const void* from, int64_t bytes) {
  int32_t code = finish(ctx, queue);
  if (code) return code;
  enter(queue);
  /* cuMemcpyHtoD would return when pageable memory has been read. It may arrive on the device later, and only the
   * legacy default stream would wait for it. */
  cu_result error = cuda.copy_to_device(address_of(&to), from, (size_t)bytes, queue->stream);
  if (error == CUDA_SUCCESS) error = cuda.synchronize(queue->stream);
  leave();
  return error == CUDA_SUCCESS ? TW_OK
                               : fail(ctx, TW_ERROR_LAUNCH, "an argument cannot be copied to the device", error);
}

static int32_t download(tw_ctx* ctx, tw_queue* queue, void* to, tw_device_pointer from, int64_t bytes) {
  int32_t code = finish(ctx, queue);
  if (code) return code;
  enter(queue);
  cu_result error = cuda.copy_to_host(to, address_of(&from), (size_t)bytes);
  leave();
  return error == CUDA_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "a result cannot be copied from the device", error);
}

static int32_t copy(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, tw_device_pointer from, int64_t bytes) {
  enter(queue);
  cu_result error = cuda.copy_on_device(address_of(&to), address_of(&from), (size_t)bytes, queue->stream);
  leave();
  return error == CUDA_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "an array cannot be copied on the device", error);
}

static int32_t fill(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, int byte, int64_t bytes) {
  enter(queue);
  cu_result error = cuda.fill_bytes(address_of(&to), (unsigned char)byte, (size_t)bytes, queue->stream);
  leave();
  return error == CUDA_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "an array cannot be filled on the device", error);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

static void profile(void) { cuda.profiles = 1; }

/* In the context: an event in front of the first launch and behind each launch. */
static void time_launch(tw_queue* queue, int is_before) {
  if (!cuda.profiles || (is_before && queue->is_timing)) return;
  cu_handle* event = is_before ? &queue->begin : &queue->end;
  if (!*event && cuda.create_event(event, 0) != CUDA_SUCCESS) *event = NULL;
  if (*event && cuda.record_event(*event, queue->stream) == CUDA_SUCCESS) queue->is_timing = 1;
}

static int32_t elapsed(tw_ctx* ctx, tw_queue* queue, double* seconds) {
  int32_t code = finish(ctx, queue);
  float milliseconds = 0;
  enter(queue);
  if (!code && queue->is_timing) cuda.event_milliseconds(&milliseconds, queue->begin, queue->end);
  leave();
  queue->is_timing = 0;
  *seconds = 1e-3 * (double)milliseconds;
  return code;
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

/* Whether the error means that the binary is for another device, so that the next one may fit. */
static int is_of_another_device(cu_result error) {
  return error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

/* Called with the lock held, in the context. */
static int32_t module_of(tw_ctx* ctx, const tw_queue* queue, const tw_device_image* image, cu_handle* module) {
  *module = tw_find_program(cuda.programs, queue->context, NULL, image->source);
  if (*module) return TW_OK;
  if (!image->binaries) {
    return tw_report(ctx, TW_ERROR_NO_DEVICE,
                     "the kernels were not compiled for CUDA: there was no compiler" TW_HINT_PREFIX
                     "install NVRTC (pip install nvidia-cuda-nvrtc) or nvcc, and compile the program again");
  }
  cu_result error = cuda.load_module(module, image->binaries[0]);
  for (const void* const* binary = image->binaries + 1; *binary && is_of_another_device(error); ++binary) {
    if (cuda.load_module(module, *binary) == CUDA_SUCCESS) error = CUDA_SUCCESS;
  }
  if (error != CUDA_SUCCESS) {
    char message[640], described[400] = "";
    tw_cuda_describe(queue->device, described, sizeof described);
    for (char* at = described; *at; ++at) {
      if (*at == '\n') *at = ';';
    }
    snprintf(message, sizeof message,
             "the kernels cannot be loaded: CUDA reports %s" TW_HINT_PREFIX
             "compile for the architecture of this device (%s), as in target=\"cuda -arch=sm_90a\"",
             name_of(error), described);
    return tw_report(ctx, TW_ERROR_NO_DEVICE, message);
  }
  return tw_keep_program(ctx, &cuda.programs, queue->context, NULL, image->source, *module);
}

static int32_t launch_in_context(tw_ctx* ctx, tw_queue* queue, const tw_device_image* image, const char* kernel,
                                 const int64_t* extents, void** values) {
  cu_handle module = NULL, function = NULL;
  pthread_mutex_lock(&lock);
  int32_t code = module_of(ctx, queue, image, &module);
  pthread_mutex_unlock(&lock);
  if (code) return code;
  cu_result error = cuda.get_function(&function, module, kernel);
  if (error != CUDA_SUCCESS) return fail(ctx, TW_ERROR_INTERNAL, "the program lacks a kernel", error);
  if (extents[6] > 0) {
    error = cuda.set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)extents[6]);
  }
  if (error == CUDA_SUCCESS) {
    time_launch(queue, 1);
    error = cuda.launch_kernel(function, (unsigned)extents[0], (unsigned)extents[1], (unsigned)extents[2],
                               (unsigned)extents[3], (unsigned)extents[4], (unsigned)extents[5], (unsigned)extents[6],
                               queue->stream, values, NULL);
  }
  if (error == CUDA_SUCCESS) {
    time_launch(queue, 0);
    return TW_OK;
  }
  char message[512];
  snprintf(
      message, sizeof message,
      "kernel %s cannot be launched on a grid of %lld x %lld x %lld blocks of %lld x %lld x %lld threads with %lld "
      "bytes of dynamic shared memory: CUDA reports %s",
      kernel, (long long)extents[0], (long long)extents[1], (long long)extents[2], (long long)extents[3],
      (long long)extents[4], (long long)extents[5], (long long)extents[6], name_of(error));
  return tw_report(ctx, TW_ERROR_LAUNCH, message);
}

/* The driver takes numbers of 32 bits, and a part of a larger grid would run. */
static int32_t refuse_grid(tw_ctx* ctx, const char* function, const char* kernel, const int64_t* extents) {
  char message[512];
  snprintf(
      message, sizeof message,
      "%.70s: kernel %.70s needs a grid of %lld x %lld x %lld blocks of %lld x %lld x %lld threads, and CUDA takes "
      "at most 2147483647 of each" TW_HINT_PREFIX
      "call it for smaller sizes, or let each block do more: split the loops that are bound to blockIdx, and leave "
      "a part serial",
      function, kernel, (long long)extents[0], (long long)extents[1], (long long)extents[2], (long long)extents[3],
      (long long)extents[4], (long long)extents[5]);
  return tw_report(ctx, TW_ERROR_LAUNCH, message);
}

static int32_t launch(tw_ctx* ctx, tw_queue* queue, const tw_device_image* image, const char* function,
                      const char* kernel, const int64_t* extents, const tw_device_argument* arguments, int32_t count) {
  for (int d = 0; d < 6; ++d) {
    if (extents[d] > INT32_MAX) return refuse_grid(ctx, function, kernel, extents);
  }
  void** values = malloc((size_t)(count + 1) * sizeof *values);
  cu_pointer* addresses = malloc((size_t)(count + 1) * sizeof *addresses);
  int32_t code = TW_ERROR_MEMORY;
  if (!values || !addresses) {
    tw_report(ctx, TW_ERROR_MEMORY, "no memory for the arguments of a kernel");
  } else {
    for (int32_t i = 0; i < count; ++i) {
      /* CUDA reads a number from the first bytes of `value`. */
      values[i] = (void*)(uintptr_t)&arguments[i].value;
      if (arguments[i].bytes) continue;
      addresses[i] = address_of((const tw_device_pointer*)(uintptr_t)arguments[i].value);
      values[i] = &addresses[i];
    }
    enter(queue);
    code = launch_in_context(ctx, queue, image, kernel, extents, values);
    leave();
    pthread_mutex_lock(&lock);
    snprintf(queue->last, sizeof queue->last, "%.70s: kernel %.70s", function, kernel);
    pthread_mutex_unlock(&lock);
  }
  free(values);
  free(addresses);
  return code;
}

const tw_device_driver tw_cuda_driver = {queue_of, stream_of, acquire, release, can_use, upload,  download, copy,
                                         fill,     flush,     order,   finish,  launch,  profile, elapsed};
