// Ctrl-C while a kernel or a compilation runs: it ends, with a KeyboardInterrupt; a second one ends the process.
#pragma once

#include "runtime/abi.h"

namespace tilewright::python {

/// While this lives, a long call with the context, or what asks interrupt_requested(), ends soon after a SIGINT, if the
/// calling thread is the one that Python hands signals to; on every thread it ends when the process does. Costs nothing
/// unless the call is long: only then a handler is put before Python's own.
class Interrupts {
 public:
  explicit Interrupts(tw_ctx* ctx);
  Interrupts() : Interrupts(nullptr) {}
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Sets the Python error of a call that ended so: what the handler raised, else KeyboardInterrupt, or SystemExit
  /// where the process is about to end.
  void raise();

 private:
  tw_ctx* ctx_;
  int32_t (*before_)(tw_ctx*);
  bool outermost_ = false;
};

/// Whether a signal asks to end what this thread does, while Interrupts live.
bool interrupt_requested();

/// Whether Python hands signals to the calling thread.
bool is_main_thread();

/// Remembers the calling thread as the one that Python hands signals to.
void set_main_thread();

}  // namespace tilewright::python
