// Outcomes of a candidate. Every failure of a candidate is one of these, never the end of a session.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright::search {

enum class Outcome : uint8_t {
  kOk,
  kBuildError,    ///< the compiler refused it, or its object cannot be linked
  kBuildTimeout,  ///< the build was beyond its deadline and killed
  kBuildCrash,    ///< the compiling process died
  kRunError,      ///< the kernel returned an error code
  kRunCrash,      ///< a signal: memory it must not touch, stack overflow, illegal instruction, ...
  kRunTimeout,    ///< the call did not return in time and was killed
  kOutOfMemory,   ///< while building or running, beyond the limit of the process
  kWrongResult,   ///< an output differs from the expected one, or bytes around an output changed
  kSlowStopped,   ///< correct as far as it got, but clearly slower than the best so far
  kCanceled,      ///< the pipeline was canceled before the candidate was done
};
inline constexpr int kNumOutcomes = 11;

/// "ok", "build_error", ...: what records and counters are called.
std::string_view outcome_name(Outcome outcome);

}  // namespace tilewright::search
