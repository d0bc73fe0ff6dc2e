// The end of the process while threads are at work here: what runs is ended before the interpreter is.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

namespace tilewright::python {

/// Whether the process is about to end: what takes long stops, as after Ctrl-C, on every thread.
bool is_process_ending();

/// Raises SystemExit in a thread when the process is about to end; threads end by it without a word. Needs the GIL.
void raise_if_process_ends();

/// Raises SystemExit in threads other than the main one, which runs what is left at exit.
void raise_if_thread_ends();

/// Releases the GIL while this lives, around what may take long. Counted, so that the process ends after it.
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
