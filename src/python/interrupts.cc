#include "python/interrupts.h"

#include <Python.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <ctime>

#include "python/process_exit.h"

namespace tilewright::python {
namespace {

pthread_t main_thread;

}  // namespace

bool is_main_thread() { return pthread_equal(pthread_self(), main_thread) != 0; }

namespace {

/// After so long, a signal that came before the handler was in place is looked for in Python.
constexpr int64_t kLookAfterNanoseconds = 50'000'000;

std::atomic<bool> stop{false};  ///< set by the handler, read by every thread of the kernel
static_assert(std::atomic<bool>::is_always_lock_free);

// State of the main thread's call; no other thread uses it.
bool in_call = false;  ///< there are Interrupts
bool installed = false, looked = false;
int64_t started = 0;
struct sigaction previous;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void on_interrupt(int signal, siginfo_t* info, void* context) {
  if (stop.exchange(true)) {
    // The second one: the kernel does not answer.
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    return;
  }
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
}

void install() {
  started = now();
  if (sigaction(SIGINT, nullptr, &previous) != 0) return;
  bool handled = (previous.sa_flags & SA_SIGINFO) || (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  if (!handled) return;
  struct sigaction action = {};
  action.sa_sigaction = on_interrupt;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  installed = sigaction(SIGINT, &action, nullptr) == 0;
}

void uninstall() {
  struct sigaction current;
  bool ours = sigaction(SIGINT, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) &&
              current.sa_sigaction == on_interrupt;
  if (ours) sigaction(SIGINT, &previous, nullptr);
  installed = false;
}

/// tw_ctx.interrupted
int32_t poll(tw_ctx*) {
  if (stop.load(std::memory_order_relaxed)) return 1;
  if (!is_main_thread()) return 0;
  if (!installed && started == 0) install();
  if (!looked && now() - started > kLookAfterNanoseconds) {
    looked = true;
    PyGILState_STATE state = PyGILState_Ensure();
    if (PyErr_CheckSignals() != 0) stop = true;
    PyGILState_Release(state);
  }
  return stop.load(std::memory_order_relaxed) ? 1 : 0;
}

/// tw_ctx.interrupted of all other threads, which get no signals.
int32_t poll_process_end(tw_ctx*) { return is_process_ending() ? 1 : 0; }

}  // namespace

bool interrupt_requested() {
  if (is_process_ending()) return true;
  return is_main_thread() && in_call && poll(nullptr) != 0;
}

void set_main_thread() { main_thread = pthread_self(); }

Interrupts::Interrupts(tw_ctx* ctx) : ctx_(ctx), before_(ctx ? ctx->interrupted : nullptr) {
  if (!is_main_thread()) {
    if (ctx_) ctx_->interrupted = poll_process_end;
    return;
  }
  if (in_call) return;
  in_call = outermost_ = true;
  installed = looked = false;
  started = 0;
  stop.store(false, std::memory_order_relaxed);
  if (ctx_) ctx_->interrupted = poll;
}

Interrupts::~Interrupts() {
  if (ctx_) ctx_->interrupted = before_;
  if (!outermost_) return;
  if (installed) uninstall();
  in_call = false;
}

void Interrupts::raise() {
  if (PyErr_Occurred() || PyErr_CheckSignals() != 0) return;
  PyErr_SetNone(is_process_ending() ? PyExc_SystemExit : PyExc_KeyboardInterrupt);
}

}  // namespace tilewright::python
