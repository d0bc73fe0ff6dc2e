#include "support/deep_stack.h"

#include <pthread.h>

#include <exception>

#include "support/diagnostic.h"
#include "support/span.h"

namespace tilewright {
namespace {

constexpr size_t kStackBytes = size_t{1} << 30;  // reserved, not committed: pages appear when they are touched
thread_local bool on_deep_stack = false;

struct Job {
  const std::function<void()>* work;
  SpanId span;
  std::exception_ptr failure;
};

void* run_job(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  on_deep_stack = true;
  SpanScope scope(job.span);
  try {
    (*job.work)();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void run_on_deep_stack(const std::function<void()>& work) {
  if (on_deep_stack) return work();
  Job job{&work, current_span(), nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  int status = pthread_create(&thread, &attributes, run_job, &job);
  pthread_attr_destroy(&attributes);
  if (status != 0) {
    throw Exception(resource_error("stack/memory", "no memory for the stack that a very deep program needs",
                                   "split the program or raise the limit of address space (ulimit -v)"));
  }
  pthread_join(thread, nullptr);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace tilewright
