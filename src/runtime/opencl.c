/* The driver of OpenCL devices. The library of the installable client driver loader is opened when it is first needed,
 * so that nothing has to be installed where no kernel for a device is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/device_driver.h"
#include "runtime/runtime.h"

/* ---- The part of OpenCL 1.2 that is used here: names and values are those of its public headers ----------------- */

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef struct cl_object* cl_handle; /* platforms, devices, contexts, queues, programs, kernels, memory */

enum {
  CL_SUCCESS = 0,
  CL_DEVICE_TYPE_GPU = 1 << 2,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_NAME = 0x102B,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_PLATFORM_NAME = 0x0902,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
  CL_COMPLETE = 0,
  CL_PROFILING_COMMAND_START = 0x1282,
  CL_PROFILING_COMMAND_END = 0x1283,
  CL_QUEUE_PROFILING_ENABLE = 1 << 1,
  CL_QUEUE_CONTEXT = 0x1090,
  CL_QUEUE_DEVICE = 0x1091,
  CL_MEM_CONTEXT = 0x1106,
  CL_MEM_READ_WRITE = 1 << 0,
  CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
  CL_INVALID_WORK_GROUP_SIZE = -54
};

#define TW_OPENCL_FUNCTIONS(X)                                                                              \
  X(cl_int, clGetPlatformIDs, (cl_uint, cl_handle*, cl_uint*))                                              \
  X(cl_int, clGetPlatformInfo, (cl_handle, cl_uint, size_t, void*, size_t*))                                \
  X(cl_int, clGetDeviceIDs, (cl_handle, cl_ulong, cl_uint, cl_handle*, cl_uint*))                           \
  X(cl_int, clGetDeviceInfo, (cl_handle, cl_uint, size_t, void*, size_t*))                                  \
  X(cl_handle, clCreateContext, (const intptr_t*, cl_uint, const cl_handle*, void*, void*, cl_int*))        \
  X(cl_handle, clCreateCommandQueue, (cl_handle, cl_handle, cl_ulong, cl_int*))                             \
  X(cl_handle, clCreateProgramWithSource, (cl_handle, cl_uint, const char**, const size_t*, cl_int*))       \
  X(cl_int, clBuildProgram, (cl_handle, cl_uint, const cl_handle*, const char*, void*, void*))              \
  X(cl_int, clGetProgramBuildInfo, (cl_handle, cl_handle, cl_uint, size_t, void*, size_t*))                 \
  X(cl_int, clReleaseProgram, (cl_handle))                                                                  \
  X(cl_handle, clCreateKernel, (cl_handle, const char*, cl_int*))                                           \
  X(cl_int, clReleaseKernel, (cl_handle))                                                                   \
  X(cl_int, clSetKernelArg, (cl_handle, cl_uint, size_t, const void*))                                      \
  X(cl_int, clEnqueueNDRangeKernel,                                                                         \
    (cl_handle, cl_handle, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const cl_handle*, \
     cl_handle*))                                                                                           \
  X(cl_handle, clCreateBuffer, (cl_handle, cl_ulong, size_t, void*, cl_int*))                               \
  X(cl_int, clReleaseMemObject, (cl_handle))                                                                \
  X(cl_int, clGetMemObjectInfo, (cl_handle, cl_uint, size_t, void*, size_t*))                               \
  X(cl_int, clGetCommandQueueInfo, (cl_handle, cl_uint, size_t, void*, size_t*))                            \
  X(cl_int, clEnqueueReadBuffer,                                                                            \
    (cl_handle, cl_handle, cl_uint, size_t, size_t, void*, cl_uint, const cl_handle*, cl_handle*))          \
  X(cl_int, clEnqueueWriteBuffer,                                                                           \
    (cl_handle, cl_handle, cl_uint, size_t, size_t, const void*, cl_uint, const cl_handle*, cl_handle*))    \
  X(cl_int, clEnqueueCopyBuffer,                                                                            \
    (cl_handle, cl_handle, cl_handle, size_t, size_t, size_t, cl_uint, const cl_handle*, cl_handle*))       \
  X(cl_int, clEnqueueFillBuffer,                                                                            \
    (cl_handle, cl_handle, const void*, size_t, size_t, size_t, cl_uint, const cl_handle*, cl_handle*))     \
  X(cl_int, clEnqueueMarkerWithWaitList, (cl_handle, cl_uint, const cl_handle*, cl_handle*))                \
  X(cl_int, clGetEventInfo, (cl_handle, cl_uint, size_t, void*, size_t*))                                   \
  X(cl_int, clGetEventProfilingInfo, (cl_handle, cl_uint, size_t, void*, size_t*))                          \
  X(cl_int, clReleaseEvent, (cl_handle))                                                                    \
  X(cl_int, clFlush, (cl_handle))                                                                           \
  X(cl_int, clFinish, (cl_handle))

#define CL_DEVICE_TYPE_ALL ((cl_ulong)0xFFFFFFFF)

enum { kMostDevices = 16 };

/* A kernel that was launched, and of which it is not known how it ended. */
typedef struct launched {
  cl_handle event;
  char* name; /* of function and kernel, for messages */
} launched;

struct tw_queue {
  cl_handle queue, context, device;
  int is_own;
  launched* launches; /* oldest first */
  int32_t count, room;
  char failure[256];   /* of the first kernel that failed and was not reported; empty: none */
  cl_ulong begin, end; /* when kernels ran, in nanoseconds; end 0: none did */
  struct tw_queue* next;
};

static struct {
#define X(result, name, parameters) result(*name) parameters;
  TW_OPENCL_FUNCTIONS(X)
#undef X
  cl_handle devices[kMostDevices], platforms[kMostDevices];
  int32_t count; /* -1: there is no OpenCL */
  pid_t process; /* that opened the library */
  tw_queue* own[kMostDevices];
  tw_queue* others; /* of callers */
  tw_loaded_program* programs;
  int profiles; /* queues are made with time stamps */
  char problem[512];
} cl;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below `count` */

static void open_library(void) {
  cl.count = -1;
  cl.process = getpid();
  /* PoCL 3.1 copies a kernel once for each thread of a block of at most two, and ends the process by an assertion if
   * that block has barriers in loops beside branches that LLVM merges. Loops over threads, its method for larger
   * blocks, work for all. It reads this when it is loaded. */
  setenv("POCL_WORK_GROUP_METHOD", "loopvec", /*overwrite=*/0);
  /* A tool such as oclgrind puts its own functions before those of the library. */
  int loaded = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL;
  void* library = loaded ? RTLD_DEFAULT : dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!loaded && !library) {
    snprintf(cl.problem, sizeof cl.problem, "libOpenCL.so.1 cannot be opened");
    return;
  }
#define X(result, name, parameters)                                                          \
  cl.name = (result(*) parameters)dlsym(library, #name);                                     \
  if (!cl.name) {                                                                            \
    snprintf(cl.problem, sizeof cl.problem, "the OpenCL library has no function %s", #name); \
    return;                                                                                  \
  }
  TW_OPENCL_FUNCTIONS(X)
#undef X
  cl_handle platforms[kMostDevices];
  cl_uint found = 0;
  cl.count = 0;
  if (cl.clGetPlatformIDs(kMostDevices, platforms, &found) != CL_SUCCESS) return;
  if (found > kMostDevices) found = kMostDevices;
  for (cl_uint p = 0; p < found && cl.count < kMostDevices; ++p) {
    cl_uint room = (cl_uint)(kMostDevices - cl.count), devices = 0;
    if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, room, cl.devices + cl.count, &devices) != CL_SUCCESS) {
      continue;
    }
    if (devices > room) devices = room;
    for (cl_uint d = 0; d < devices; ++d) cl.platforms[cl.count++] = platforms[p];
  }
}

int32_t tw_opencl_count(char* message, size_t size) {
  pthread_once(&opened, open_library);
  if (message && size) snprintf(message, size, "%s", cl.problem);
  return cl.count;
}

static void info(cl_handle device, cl_uint what, char* text, size_t size) {
  text[0] = '\0';
  if (cl.clGetDeviceInfo(device, what, size - 1, text, NULL) != CL_SUCCESS) text[0] = '\0';
  text[size - 1] = '\0';
}

int32_t tw_opencl_describe(int32_t index, char* text, size_t size) {
  if (index < 0 || index >= tw_opencl_count(NULL, 0)) return 0;
  char name[256] = "", version[256] = "", platform[256] = "";
  info(cl.devices[index], CL_DEVICE_NAME, name, sizeof name);
  info(cl.devices[index], CL_DEVICE_VERSION, version, sizeof version);
  cl.clGetPlatformInfo(cl.platforms[index], CL_PLATFORM_NAME, sizeof platform - 1, platform, NULL);
  char driver[256] = "";
  info(cl.devices[index], CL_DRIVER_VERSION, driver, sizeof driver);
  snprintf(text, size, "%s\n%s\n%s\n%s", name, version, platform, driver);
  return 1;
}

int32_t tw_opencl_default(void) {
  const int32_t count = tw_opencl_count(NULL, 0);
  for (int32_t i = 0; i < count; ++i) {
    cl_ulong type = 0;
    cl.clGetDeviceInfo(cl.devices[i], CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (type & CL_DEVICE_TYPE_GPU) return i;
  }
  return count > 0 ? 0 : -1;
}

int32_t tw_opencl_limits(int32_t index, int64_t* threads, int64_t* shared_bytes) {
  if (index < 0 || index >= tw_opencl_count(NULL, 0)) return 0;
  size_t most = 0;
  cl_ulong bytes = 0;
  if (cl.clGetDeviceInfo(cl.devices[index], CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL) != CL_SUCCESS ||
      cl.clGetDeviceInfo(cl.devices[index], CL_DEVICE_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL) != CL_SUCCESS) {
    return 0;
  }
  *threads = (int64_t)most;
  *shared_bytes = (int64_t)bytes;
  return 1;
}

static int32_t fail(tw_ctx* ctx, int32_t code, const char* what, cl_int error) {
  char message[256];
  snprintf(message, sizeof message, "%s: OpenCL reports error %d", what, error);
  return tw_report(ctx, code, message);
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* Called with the lock held, as all functions of this part but the last. */
static tw_queue* own_queue(tw_ctx* ctx, int32_t device) {
  if (cl.own[device]) return cl.own[device];
  cl_int error = CL_SUCCESS;
  cl_handle chosen = cl.devices[device];
  cl_handle context = cl.clCreateContext(NULL, 1, &chosen, NULL, NULL, &error);
  if (error != CL_SUCCESS) {
    fail(ctx, TW_ERROR_NO_DEVICE, "no context for the device", error);
    return NULL;
  }
  cl_handle queue = cl.clCreateCommandQueue(context, chosen, cl.profiles ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
  if (error != CL_SUCCESS) {
    fail(ctx, TW_ERROR_NO_DEVICE, "no queue for the device", error);
    return NULL;
  }
  tw_queue* own = calloc(1, sizeof *own);
  if (!own) {
    tw_report(ctx, TW_ERROR_MEMORY, "no memory for the queue of a device");
    return NULL;
  }
  own->queue = queue;
  own->context = context;
  own->device = chosen;
  own->is_own = 1;
  cl.own[device] = own;
  return own;
}

/* What stands for a queue of OpenCL. */
static tw_queue* queue_of_caller(tw_ctx* ctx, cl_handle queue) {
  for (int32_t d = 0; d < cl.count; ++d) {
    if (cl.own[d] && cl.own[d]->queue == queue) return cl.own[d];
  }
  tw_queue* known = cl.others;
  while (known && known->queue != queue) known = known->next;
  if (!known) {
    known = calloc(1, sizeof *known);
    if (!known) {
      tw_report(ctx, TW_ERROR_MEMORY, "no memory for the queue of a device");
      return NULL;
    }
    known->queue = queue;
    known->next = cl.others;
    cl.others = known;
  }
  /* A queue that was released may have left its address to another one. */
  cl_int error = cl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof known->context, &known->context, NULL);
  if (error == CL_SUCCESS)
    error = cl.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof known->device, &known->device, NULL);
  if (error == CL_SUCCESS) return known;
  fail(ctx, TW_ERROR_NO_DEVICE, "the stream of the call is not a queue of OpenCL", error);
  return NULL;
}

static tw_queue* queue_of(tw_ctx* ctx, int32_t device, void* stream) {
  const int32_t count = tw_opencl_count(NULL, 0);
  if (count <= 0) {
    tw_report_no_device(
        ctx, "OpenCL", count < 0 ? cl.problem : "the OpenCL library lists none",
        "install a driver; on Debian, pocl-opencl-icd and ocl-icd-libopencl1 run kernels on the processor");
    return NULL;
  }
  if (cl.process != getpid()) {
    tw_report_fork(ctx, "OpenCL");
    return NULL;
  }
  if (device < 0) device = tw_opencl_default();
  if (device >= count && !stream) {
    tw_report_device_number(ctx, "OpenCL", device, count);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  tw_queue* queue = stream ? queue_of_caller(ctx, (cl_handle)stream) : own_queue(ctx, device);
  pthread_mutex_unlock(&lock);
  return queue;
}

static void* stream_of(tw_queue* queue) { return queue->queue; }

/* ---- Launched kernels -------------------------------------------------------------------------------------------- */

/* Called with the lock held, as all functions of this part. */
static void note_end(tw_queue* queue, const launched* launch, cl_int status) {
  if (status < CL_COMPLETE && !queue->failure[0]) {
    snprintf(queue->failure, sizeof queue->failure, "%s failed on the device: OpenCL reports error %d",
             launch->name ? launch->name : "a kernel", status);
  }
  cl_ulong begin = 0, end = 0;
  if (status == CL_COMPLETE && cl.profiles &&
      cl.clGetEventProfilingInfo(launch->event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL) == CL_SUCCESS &&
      cl.clGetEventProfilingInfo(launch->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) == CL_SUCCESS) {
    if (!queue->end || begin < queue->begin) queue->begin = begin;
    if (end > queue->end) queue->end = end;
  }
  cl.clReleaseEvent(launch->event);
  free(launch->name);
}

/* Forgets the launches that have ended, up to the first that has not. */
static void forget_ended(tw_queue* queue) {
  int32_t ended = 0;
  for (; ended < queue->count; ++ended) {
    const launched* launch = &queue->launches[ended];
    cl_int status = CL_COMPLETE;
    if (cl.clGetEventInfo(launch->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) != CL_SUCCESS)
      status = CL_COMPLETE;
    if (status > CL_COMPLETE) break;
    note_end(queue, launch, status);
  }
  queue->count -= ended;
  if (ended == 0) return; /* there may be no memory for launches yet */
  memmove(queue->launches, queue->launches + ended, (size_t)queue->count * sizeof *queue->launches);
}

static void note_launch(tw_queue* queue, cl_handle event, const char* function, const char* kernel) {
  enum { kMost = 64 };
  char name[160];
  snprintf(name, sizeof name, "%.70s: kernel %.70s", function, kernel);
  if (queue->count >= kMost) forget_ended(queue);
  if (queue->count == queue->room) {
    const int32_t room = queue->room ? 2 * queue->room : kMost;
    launched* more = realloc(queue->launches, (size_t)room * sizeof *more);
    if (!more) {
      cl.clReleaseEvent(event);
      return;
    }
    queue->launches = more;
    queue->room = room;
  }
  queue->launches[queue->count++] = (launched){event, strdup(name)};
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Waits for all enqueued commands, or until the call is interrupted. OpenCL cannot stop a kernel: after an interruption
 * it runs to its end, and its buffers stay allocated until then. */
static int32_t wait_or_interrupted(tw_ctx* ctx, tw_queue* queue) {
  enum { kYields = 200, kShortest = 20000, kLongest = 1000000 /* nanoseconds */ };
  cl_handle event = NULL;
  if (!ctx->interrupted) return TW_OK; /* what follows waits anyway */
  if (cl.clEnqueueMarkerWithWaitList(queue->queue, 0, NULL, &event) != CL_SUCCESS) return TW_OK;
  cl.clFlush(queue->queue);
  int32_t code = TW_OK;
  struct timespec pause = {0, kShortest};
  for (int tries = 0; !code; ++tries) {
    cl_int status = CL_COMPLETE; /* below it: a command failed */
    if (cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) != CL_SUCCESS) break;
    if (status <= CL_COMPLETE) break;
    code = tw_interrupted(ctx);
    if (tries < kYields) {
      sched_yield();
    } else if (!code) {
      nanosleep(&pause, NULL);
      if (pause.tv_nsec < kLongest) pause.tv_nsec *= 2;
    }
  }
  cl.clReleaseEvent(event);
  return code;
}

static int32_t finish(tw_ctx* ctx, tw_queue* queue) {
  int32_t code = wait_or_interrupted(ctx, queue);
  if (code) return code;
  cl_int error = cl.clFinish(queue->queue);
  char failure[sizeof queue->failure];
  pthread_mutex_lock(&lock);
  forget_ended(queue);
  memcpy(failure, queue->failure, sizeof failure);
  queue->failure[0] = '\0';
  pthread_mutex_unlock(&lock);
  if (failure[0]) return tw_report(ctx, TW_ERROR_LAUNCH, failure);
  return error == CL_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "a kernel failed", error);
}

static void flush(tw_queue* queue) { cl.clFlush(queue->queue); }

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void* acquire(tw_ctx* ctx, tw_queue* queue, int64_t bytes) {
  cl_int error = CL_SUCCESS;
  /* There are no buffers without bytes. */
  cl_handle memory =
      cl.clCreateBuffer(queue->context, CL_MEM_READ_WRITE, (size_t)(bytes > 0 ? bytes : 1), NULL, &error);
  if (error == CL_SUCCESS) return memory;
  char message[128];
  snprintf(message, sizeof message, "no memory for %lld bytes on the device: OpenCL reports error %d", (long long)bytes,
           error);
  tw_report(ctx, TW_ERROR_MEMORY, message);
  return NULL;
}

/* OpenCL deletes a memory object when the commands that use it have finished. */
static void release(tw_queue* queue, void* memory) {
  (void)queue;
  cl.clReleaseMemObject((cl_handle)memory);
}

static int can_use(tw_queue* queue, void* memory) {
  cl_handle context = NULL;
  return cl.clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL) == CL_SUCCESS &&
         context == queue->context;
}

static int32_t upload(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, const void* from, int64_t bytes) {
  /* The copy begins after kernels that run, which Ctrl-C must be able to interrupt. */
  int32_t code = wait_or_interrupted(ctx, queue);
  if (code) return code;
  cl_int error =
      cl.clEnqueueWriteBuffer(queue->queue, to.memory, 1, (size_t)to.offset, (size_t)bytes, from, 0, NULL, NULL);
  return error == CL_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "an argument cannot be copied to the device", error);
}

static int32_t download(tw_ctx* ctx, tw_queue* queue, void* to, tw_device_pointer from, int64_t bytes) {
  int32_t code = finish(ctx, queue);
  if (code) return code;
  cl_int error =
      cl.clEnqueueReadBuffer(queue->queue, from.memory, 1, (size_t)from.offset, (size_t)bytes, to, 0, NULL, NULL);
  return error == CL_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "a result cannot be copied from the device", error);
}

static int32_t copy(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, tw_device_pointer from, int64_t bytes) {
  cl_int error = cl.clEnqueueCopyBuffer(queue->queue, from.memory, to.memory, (size_t)from.offset, (size_t)to.offset,
                                        (size_t)bytes, 0, NULL, NULL);
  return error == CL_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "an array cannot be copied on the device", error);
}

static int32_t fill(tw_ctx* ctx, tw_queue* queue, tw_device_pointer to, int byte, int64_t bytes) {
  const char pattern = (char)byte;
  cl_int error =
      cl.clEnqueueFillBuffer(queue->queue, to.memory, &pattern, 1, (size_t)to.offset, (size_t)bytes, 0, NULL, NULL);
  return error == CL_SUCCESS ? TW_OK : fail(ctx, TW_ERROR_LAUNCH, "an array cannot be filled on the device", error);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

static void profile(void) { cl.profiles = 1; }

static int32_t elapsed(tw_ctx* ctx, tw_queue* queue, double* seconds) {
  int32_t code = finish(ctx, queue);
  pthread_mutex_lock(&lock);
  *seconds = queue->end ? 1e-9 * (double)(queue->end - queue->begin) : 0;
  queue->begin = queue->end = 0;
  pthread_mutex_unlock(&lock);
  return code;
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

/* Called with the lock held. */
static cl_handle program_of(tw_ctx* ctx, const tw_queue* queue, const char* source) {
  cl_int error = CL_SUCCESS;
  cl_handle program = tw_find_program(cl.programs, queue->context, queue->device, source);
  if (program) return program;
  program = cl.clCreateProgramWithSource(queue->context, 1, &source, NULL, &error);
  if (error != CL_SUCCESS) {
    fail(ctx, TW_ERROR_LAUNCH, "no program on the device", error);
    return NULL;
  }
  cl_ulong floats = 0;
  cl.clGetDeviceInfo(queue->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats, NULL);
  const char* options = floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                            ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                            : "-cl-std=CL1.2";
  error = cl.clBuildProgram(program, 1, &queue->device, options, NULL, NULL);
  if (error == CL_SUCCESS) {
    if (tw_keep_program(ctx, &cl.programs, queue->context, queue->device, source, program) == TW_OK) return program;
  } else {
    char log[1024] = "", message[1500];
    cl.clGetProgramBuildInfo(program, queue->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    snprintf(message, sizeof message, "the driver does not compile the kernel (error %d): %s", error, log);
    tw_report(ctx, TW_ERROR_LAUNCH, message);
  }
  cl.clReleaseProgram(program);
  return NULL;
}

/* The device may allow less than the target says. */
static int32_t refuse_launch(tw_ctx* ctx, const tw_queue* queue, const char* kernel, const int64_t* extents,
                             cl_int error) {
  size_t most = 0;
  cl_ulong local = 0;
  cl.clGetDeviceInfo(queue->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL);
  cl.clGetDeviceInfo(queue->device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
  char message[512];
  snprintf(
      message, sizeof message,
      "kernel %s cannot be launched on blocks of %lld x %lld x %lld threads: OpenCL reports error %d" TW_HINT_PREFIX
      "this device allows %zu threads in a block, and has %llu bytes of local memory",
      kernel, (long long)extents[3], (long long)extents[4], (long long)extents[5], error, most,
      (unsigned long long)local);
  return tw_report(ctx, TW_ERROR_LAUNCH, message);
}

static cl_int set_argument(cl_handle kernel, cl_uint* at, const tw_device_argument* argument) {
  if (argument->bytes) return cl.clSetKernelArg(kernel, (*at)++, (size_t)argument->bytes, &argument->value);
  /* Two parameters stand for a pointer. */
  const tw_device_pointer* pointer = (const tw_device_pointer*)(uintptr_t)argument->value;
  cl_int error = cl.clSetKernelArg(kernel, (*at)++, sizeof pointer->memory, &pointer->memory);
  return error == CL_SUCCESS ? cl.clSetKernelArg(kernel, (*at)++, sizeof pointer->offset, &pointer->offset) : error;
}

static int32_t launch(tw_ctx* ctx, tw_queue* queue, const tw_device_image* image, const char* function,
                      const char* kernel, const int64_t* extents, const tw_device_argument* arguments, int32_t count) {
  size_t global[3], local[3];
  for (int d = 0; d < 3; ++d) {
    local[d] = (size_t)extents[3 + d];
    global[d] = (size_t)extents[d] * local[d];
  }
  int32_t code = TW_OK;
  /* Arguments belong to the kernel object, which others must not use meanwhile. */
  pthread_mutex_lock(&lock);
  cl_int error = CL_SUCCESS;
  cl_handle program = program_of(ctx, queue, image->source), object = NULL, event = NULL;
  if (!program) {
    code = TW_ERROR_LAUNCH;
  } else {
    object = cl.clCreateKernel(program, kernel, &error);
    if (error != CL_SUCCESS) code = fail(ctx, TW_ERROR_INTERNAL, "the program lacks a kernel", error);
  }
  cl_uint at = 0;
  for (int32_t i = 0; i < count && !code; ++i) {
    error = set_argument(object, &at, &arguments[i]);
    if (error != CL_SUCCESS) code = fail(ctx, TW_ERROR_INTERNAL, "an argument of a kernel does not fit", error);
  }
  if (!code) {
    error = cl.clEnqueueNDRangeKernel(queue->queue, object, 3, NULL, global, local, 0, NULL, &event);
    if (error != CL_SUCCESS) {
      code = refuse_launch(ctx, queue, kernel, extents, error);
    } else {
      note_launch(queue, event, function, kernel);
    }
  }
  if (object) cl.clReleaseKernel(object);
  pthread_mutex_unlock(&lock);
  return code;
}

/* Events of a queue say nothing of commands before them in another context. */
static int32_t order(tw_ctx* ctx, tw_queue* before, tw_queue* after) {
  (void)after;
  return finish(ctx, before);
}

const tw_device_driver tw_opencl_driver = {queue_of, stream_of, acquire, release, can_use, upload,  download, copy,
                                           fill,     flush,     order,   finish,  launch,  profile, elapsed};
