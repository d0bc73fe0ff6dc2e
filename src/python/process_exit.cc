#include "python/process_exit.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "python/interrupts.h"
#include "search/measure/pipeline.h"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

using Clock = std::chrono::steady_clock;
/// Work that does not check for cancellation, such as one LLVM pass over a large function, is not waited for any
/// longer.
constexpr auto kLongestWait = std::chrono::seconds(10);
constexpr auto kPollInterval = std::chrono::milliseconds(1);

std::atomic<bool> ending{false};
std::atomic<int> threads_inside{0};
thread_local int depth = 0;

/// Only the forking thread exists in the child of a fork.
void count_after_fork() { threads_inside = depth > 0 ? 1 : 0; }

/// Skips destructors of static objects (of LLVM, for example) if threads that may use these objects are running.
void skip_destructors(int status, void*) {
  if (threads_inside == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

/// Ends what runs on other threads, and waits for them; a second Ctrl-C ends the wait.
void end_threads() {
  ending = true;
  on_exit(skip_destructors, nullptr);
  const auto end = Clock::now() + kLongestWait;
  while (true) {
    bool ended = false;
    Py_BEGIN_ALLOW_THREADS;
    ended = search::MeasurePipeline::cancel_all(std::chrono::milliseconds(50)) && threads_inside == 0;
    if (!ended) std::this_thread::sleep_for(kPollInterval);
    Py_END_ALLOW_THREADS;
    if (ended) return;
    if (Clock::now() > end || PyErr_CheckSignals() != 0) break;
  }
  PyErr_Clear();
}

/// Python waits for threads that are no daemons before it calls what is registered with atexit. After Ctrl-C in the
/// main thread they are to end, too.
void end_threads_after_interrupt() {
  const nb::object last = nb::getattr(nb::module_::import_("sys"), "last_type", nb::none());
  if (last.is(nb::handle(PyExc_KeyboardInterrupt))) ending = true;
}

std::atomic<bool> is_registered{false};

/// Registers the function that ends threads with threading._register_atexit(), as concurrent.futures does. Python
/// refuses that after the main thread has ended; then the function runs at once. If this Python has no
/// _register_atexit(), only daemon threads are ended. Registered twice: at import, because registering while the main
/// thread ends is a race; and by the first thread, because functions run in reverse order, and this one must run before
/// executors are joined.
void register_with_threading() {
  try {
    nb::module_::import_("threading").attr("_register_atexit")(nb::cpp_function(&end_threads_after_interrupt));
  } catch (nb::python_error& refused) {
    if (refused.matches(PyExc_RuntimeError)) end_threads_after_interrupt();
  }
}

}  // namespace

bool is_process_ending() { return ending.load(std::memory_order_relaxed); }

void raise_if_process_ends() {
  if (!is_process_ending()) return;
  PyErr_SetNone(PyExc_SystemExit);
  throw nb::python_error();
}

void raise_if_thread_ends() {
  if (is_process_ending() && !is_main_thread()) raise_if_process_ends();
}

GilReleased::GilReleased() {
  if (!is_main_thread() && !is_registered.exchange(true)) register_with_threading();
  if (depth++ == 0) ++threads_inside;
  state_ = PyEval_SaveThread();
}

GilReleased::~GilReleased() {
  PyEval_RestoreThread(state_);
  if (--depth == 0) --threads_inside;
}

void bind_process_exit(nb::module_& m) {
  pthread_atfork(nullptr, nullptr, count_after_fork);
  m.def("_end_threads", &end_threads);
  nb::module_::import_("atexit").attr("register")(m.attr("_end_threads"));
  register_with_threading();
}

}  // namespace tilewright::python
