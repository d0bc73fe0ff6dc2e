#include "search/measure/control_block.h"

#include <fmt/format.h>

#include <ctime>

#include "search/measure/arguments.h"

namespace tilewright::search {

uint64_t monotonic_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

std::string describe_crash(const ControlBlock& block, const std::vector<ArgumentSpec>& specs) {
  if (block.crashed.load(std::memory_order_acquire) != 1) return "";
  if (block.is_stack_overflow == 1) return "the stack overflowed";
  const char* verb = block.is_write == 1 ? "wrote" : block.is_write == 0 ? "read" : "accessed memory";
  const int64_t argument = block.argument, distance = block.distance;
  if (argument < 0 || argument >= static_cast<int64_t>(specs.size()))
    return block.address ? fmt::format("{} at address {:#x}", verb, block.address) : "";
  const ArgumentSpec& spec = specs[argument];
  const auto size = static_cast<int64_t>(spec.bytes());
  if (distance < 0) return fmt::format("{} {} bytes before the start of {}", verb, -distance, spec.name);
  if (distance >= size) return fmt::format("{} {} bytes behind the end of {}", verb, distance - size, spec.name);
  return fmt::format("{} to {}, which is only read by the program", verb, spec.name);
}

}  // namespace tilewright::search
