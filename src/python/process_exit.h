// Shuts down cleanly while other threads run C++ code: they end before the Python interpreter does.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

namespace tilewright::python {

/// Whether the process is about to end, so that long calls stop on every thread, as after Ctrl-C.
bool is_process_ending();

/// Raises SystemExit, which ends a thread silently, if the process is about to end. Needs the GIL.
void raise_if_process_ends();

/// Like raise_if_process_ends(), but not on the main thread, which runs exit handlers.
void raise_if_thread_ends();

/// Releases the GIL in its scope, around long work. The process waits for all such scopes before it ends.
class GilReleased {
 public:
  GilReleased();
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// Returns function(), run without the GIL.
template <class Function>
auto gil_released(const Function& function) {
  raise_if_thread_ends();
  GilReleased release;
  return function();
}

}  // namespace tilewright::python
