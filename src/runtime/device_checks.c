/* Assertions of kernels: the error word of each queue, and the messages of the numbers that kernels put there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device_driver.h"
#include "runtime/runtime.h"

/* In the memory of a device. */
typedef struct error_record {
  int64_t number; /* of the assertion that failed first; 0: none did */
  int64_t value;  /* the number of its message */
} error_record;

typedef struct error_word {
  tw_queue* queue;
  tw_device_pointer record;
  int is_pending; /* a kernel with assertions was launched, and its record was not read since */
  struct error_word* next;
} error_word;

/* The assertions of a kernel. */
typedef struct checked_kernel {
  char* name; /* of function and kernel, for messages */
  tw_device_check* checks;
  int32_t count, first;
  struct checked_kernel* next;
} checked_kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the process: queues and programs of drivers are never freed, either. */
static error_word* words;
static checked_kernel* kernels; /* the last one first */

static error_word* find_word(const tw_queue* queue) {
  error_word* word = words;
  while (word && word->queue != queue) word = word->next;
  return word;
}

tw_device_pointer* tw_error_word(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue) {
  pthread_mutex_lock(&lock);
  error_word* word = find_word(queue);
  if (!word && (word = calloc(1, sizeof *word))) {
    word->queue = queue;
    word->next = words;
    words = word;
  }
  /* A queue of a caller that was released may have left its place to one of another context. */
  if (word && word->record.memory && !driver->can_use(queue, word->record.memory)) {
    driver->release(queue, word->record.memory);
    word->record.memory = NULL;
  }
  int32_t code = word ? TW_OK : tw_report(ctx, TW_ERROR_MEMORY, "no memory for the error word of a device");
  if (word && !word->record.memory) {
    word->record.memory = driver->acquire(ctx, queue, sizeof(error_record));
    code = word->record.memory ? driver->fill(ctx, queue, word->record, 0, sizeof(error_record)) : TW_ERROR_MEMORY;
  }
  if (!code) word->is_pending = 1;
  pthread_mutex_unlock(&lock);
  return code ? NULL : &word->record;
}

static int is_same_text(const char* a, const char* b) { return a == b || (a && b && strcmp(a, b) == 0); }

static int has_checks(const checked_kernel* kernel, const char* name, const tw_device_check* checks, int32_t count) {
  if (kernel->count != count || strcmp(kernel->name, name) != 0) return 0;
  for (int32_t i = 0; i < count; ++i) {
    if (!is_same_text(kernel->checks[i].before, checks[i].before) ||
        !is_same_text(kernel->checks[i].behind, checks[i].behind)) {
      return 0;
    }
  }
  return 1;
}

/* A copy, because generated code may be unloaded before the kernel has finished. NULL: there is no memory. */
static checked_kernel* copy_of(const char* name, const tw_device_check* checks, int32_t count) {
  checked_kernel* copy = calloc(1, sizeof *copy);
  if (!copy) return NULL;
  copy->name = strdup(name);
  copy->count = count;
  copy->checks = calloc((size_t)count, sizeof *copy->checks);
  int is_complete = copy->name && copy->checks;
  for (int32_t i = 0; i < count && is_complete; ++i) {
    copy->checks[i].before = strdup(checks[i].before);
    if (checks[i].behind) copy->checks[i].behind = strdup(checks[i].behind);
    is_complete = copy->checks[i].before && (copy->checks[i].behind || !checks[i].behind);
  }
  return is_complete ? copy : NULL;
}

int32_t tw_number_checks(tw_ctx* ctx, const char* function, const char* kernel, const tw_device_check* checks,
                         int32_t count, int32_t* first) {
  char name[160];
  snprintf(name, sizeof name, "%.70s: kernel %.70s", function, kernel);
  int32_t code = TW_OK;
  pthread_mutex_lock(&lock);
  checked_kernel* known = kernels;
  while (known && !has_checks(known, name, checks, count)) known = known->next;
  if (!known && (known = copy_of(name, checks, count))) {
    known->first = kernels ? kernels->first + kernels->count : 0;
    known->next = kernels;
    kernels = known;
  }
  if (known) {
    *first = known->first;
  } else {
    code = tw_report(ctx, TW_ERROR_MEMORY, "no memory for the messages of assertions");
  }
  pthread_mutex_unlock(&lock);
  return code;
}

static int32_t report(tw_ctx* ctx, error_record failed) {
  char message[1900] = "an assertion of a kernel failed";
  pthread_mutex_lock(&lock);
  const checked_kernel* kernel = kernels;
  while (kernel && failed.number <= kernel->first) kernel = kernel->next;
  if (kernel && failed.number <= kernel->first + kernel->count) {
    const tw_device_check* check = &kernel->checks[failed.number - kernel->first - 1];
    if (check->behind) {
      snprintf(message, sizeof message, "%s: %s%lld%s", kernel->name, check->before, (long long)failed.value,
               check->behind);
    } else {
      snprintf(message, sizeof message, "%s: %s", kernel->name, check->before);
    }
  }
  pthread_mutex_unlock(&lock);
  return tw_report(ctx, TW_ERROR_ASSERTION, message);
}

int32_t tw_report_failed_check(tw_ctx* ctx, const tw_device_driver* driver, tw_queue* queue) {
  pthread_mutex_lock(&lock);
  error_word* word = find_word(queue);
  const int is_pending = word && word->is_pending;
  const tw_device_pointer from = word ? word->record : (tw_device_pointer){NULL, 0};
  if (is_pending) word->is_pending = 0;
  pthread_mutex_unlock(&lock);
  if (!is_pending) return TW_OK;
  error_record failed = {0, 0};
  int32_t code = driver->download(ctx, queue, &failed, from, sizeof failed);
  if (code || failed.number == 0) return code;
  code = driver->fill(ctx, queue, from, 0, sizeof failed);
  return code ? code : report(ctx, failed);
}
