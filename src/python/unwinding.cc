// A thread that Python ends is parked.
//
// Once the interpreter finalizes, Python 3.11 to 3.13 end every other thread where it next wants the GIL, by
// pthread_exit(). That unwinds the stack, and C++ frames on it run their destructors without the GIL, or, where they
// are noexcept, end the process: "terminate called without an active exception". So each call from this module that may
// take the GIL goes through a frame that stops the unwinding before it reaches any other frame of ours, and sleeps
// until the process is gone, as Python 3.14 does by itself (python/cpython#87135). The linker's --wrap puts these
// frames in.
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace {

[[noreturn]] void park() {
  while (true) pause();
}

}  // namespace

// pthread_exit() throws no C++ object, so the sanitizer would report that the reference below is bound to null.
#define X(result, name, parameters, arguments)                                      \
  extern "C" result __real_##name parameters;                                       \
  extern "C" __attribute__((no_sanitize("null"))) result __wrap_##name parameters;  \
  extern "C" __attribute__((no_sanitize("null"))) result __wrap_##name parameters { \
    try {                                                                           \
      return __real_##name arguments;                                               \
    } catch (abi::__forced_unwind&) { /* pthread_exit() */                          \
      park();                                                                       \
    }                                                                               \
  }
#include "python/python_calls.def"
#undef X
