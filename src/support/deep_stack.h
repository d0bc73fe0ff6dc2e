// Recursion over deep trees. A node stores its depth, so an entry point knows in advance whether the caller's stack is
// large enough. If it is not, the work runs on a thread with its own stack.
#pragma once

#include <cstdint>
#include <functional>

namespace tilewright {

/// The deepest tree that nodes may form; make() refuses deeper ones.
inline constexpr uint32_t kMaxDepth = 16384;
/// Up to this depth a recursion runs where it is called: at about 1 KiB a level it needs half a MiB.
inline constexpr uint32_t kInlineDepth = 512;

void run_on_deep_stack(const std::function<void()>& work);

/// Runs `work` (exceptions pass through), on a 1 GiB stack when `depth` asks for it. Nested calls stay where they are.
template <class F>
void with_stack_for(uint32_t depth, F&& work) {
  if (depth <= kInlineDepth) {
    work();
  } else {
    run_on_deep_stack([&] { work(); });
  }
}

}  // namespace tilewright
