// Names of annotations that more than one layer knows.
#pragma once

namespace tilewright {

/// Of a loop: the number of copies of its body per iteration of machine code. 1 keeps it rolled.
inline constexpr const char* kUnrollHint = "unroll_hint";

}  // namespace tilewright
