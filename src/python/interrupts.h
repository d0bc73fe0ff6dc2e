// Handles Ctrl-C while a kernel or a compilation runs: the call ends with KeyboardInterrupt. A second Ctrl-C ends the
// process.
#pragma once

#include "runtime/abi.h"

namespace tilewright::python {

/// Makes long calls in its scope interruptible: kernels that run with the context, and code that polls
/// interrupt_requested(). On Python's main thread, they end soon after SIGINT; on all threads, when the process ends.
/// The signal handler is installed only if a call takes long, so short calls pay nothing.
class Interrupts {
 public:
  explicit Interrupts(tw_ctx* ctx);
  Interrupts() : Interrupts(nullptr) {}
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Sets the Python error of an interrupted call: the exception of Python's signal handler, else KeyboardInterrupt, or
  /// SystemExit if the process is about to end.
  void raise();

 private:
  tw_ctx* ctx_;
  int32_t (*before_)(tw_ctx*);
  bool outermost_ = false;
};

/// Whether a signal has requested that this thread ends its work. Only within the scope of an Interrupts object.
bool interrupt_requested();

/// Whether the calling thread is Python's main thread, which runs signal handlers.
bool is_main_thread();

/// Records the calling thread as Python's main thread.
void set_main_thread();

}  // namespace tilewright::python
