// Cooperative cancellation: long work polls interrupted() between its steps.
//
//   InterruptionScope scope([] { return user_pressed_ctrl_c(); });   // around the work, on its thread
//   if (interrupted()) return interruption_error();                  // within it
#pragma once

#include "support/result.h"

namespace tilewright {

using InterruptionTest = bool (*)();

namespace detail {
inline thread_local InterruptionTest interruption_test = nullptr;
}  // namespace detail

class InterruptionScope {
 public:
  explicit InterruptionScope(InterruptionTest test) : before_(detail::interruption_test) {
    detail::interruption_test = test;
  }
  ~InterruptionScope() { detail::interruption_test = before_; }
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  InterruptionTest before_;
};

inline bool interrupted() { return detail::interruption_test && detail::interruption_test(); }
inline Diagnostic interruption_error() {
  return resource_error("compile/interrupted", "the compilation was interrupted");
}

}  // namespace tilewright
