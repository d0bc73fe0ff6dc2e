// The first page of the memory that parent and measuring helper share: what the parent must be able to see when the
// helper cannot answer any more, because it hangs or has crashed.
//
// A miscompiled kernel may write anything into it, so the parent uses it for deadlines and messages only.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::search {

struct ArgumentSpec;

struct ControlBlock {
  /// CLOCK_MONOTONIC, in nanoseconds, at which the running call began; 0 while none runs.
  std::atomic<uint64_t> call_began;

  // Left by the handler of fatal signals.
  std::atomic<uint32_t> crashed;
  int32_t signal;
  int32_t is_write;  ///< 1: a store, 0: a load, -1: unknown
  uint64_t address;
  int32_t argument;  ///< argument whose guard pages, or read-only pages, hold the address; -1: none
  int64_t distance;  ///< distance of the address from that argument's first byte
  int32_t is_stack_overflow;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(ControlBlock) <= 4096);

uint64_t monotonic_ns();

/// "wrote 8 bytes behind the end of C" and the like; empty when the block holds nothing.
std::string describe_crash(const ControlBlock& block, const std::vector<ArgumentSpec>& specs);

}  // namespace tilewright::search
