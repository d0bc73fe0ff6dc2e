// Runs recursive traversals of deep trees without overflowing the stack. Nodes store their depth, so a traversal knows
// in advance whether the caller's stack is large enough. If it is not, it runs on a thread with a large stack.
#pragma once

#include <cstdint>
#include <functional>

namespace tilewright {

/// The deepest tree that nodes may form; make() refuses deeper ones.
inline constexpr uint32_t kMaxDepth = 16384;
/// Up to this depth, recursion uses the caller's stack: at about 1 KiB per level, it needs half a MiB.
inline constexpr uint32_t kInlineDepth = 512;

void run_on_deep_stack(const std::function<void()>& work);

/// Runs `work`, on a 1 GiB stack if `depth` exceeds kInlineDepth. Propagates exceptions. Nested calls use the same
/// stack.
template <class F>
void with_stack_for(uint32_t depth, F&& work) {
  if (depth <= kInlineDepth) {
    work();
  } else {
    run_on_deep_stack([&] { work(); });
  }
}

}  // namespace tilewright
