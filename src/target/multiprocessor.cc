#include "target/multiprocessor.h"

#include <algorithm>
#include <charconv>

namespace tilewright {
namespace {

constexpr int64_t kWarpThreads = 32;
/// Registers of a multiprocessor, and the number that is allocated to a warp at once.
constexpr int64_t kAllRegisters = 1 << 16, kRegisterUnit = 256;
/// Partitions of a multiprocessor, each of which holds the registers of a warp as a whole.
constexpr int64_t kPartitions = 4;

constexpr Multiprocessor kMultiprocessors[] = {
    {70, 64, 32, 96 << 10, 0, 256}, {72, 64, 32, 96 << 10, 0, 256}, {75, 32, 16, 64 << 10, 0, 256},
    {80, 64, 32, 164 << 10},        {86, 48, 16, 100 << 10},        {87, 48, 16, 164 << 10},
    {89, 48, 24, 100 << 10},        {90, 64, 32, 228 << 10},        {100, 64, 32, 228 << 10},
    {103, 64, 32, 228 << 10},       {120, 48, 24, 100 << 10},       {121, 48, 24, 100 << 10},
};

int64_t rounded_up(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

int64_t warps_of(const BlockUse& use) { return (use.threads + kWarpThreads - 1) / kWarpThreads; }

}  // namespace

std::optional<Multiprocessor> Multiprocessor::of(std::string_view arch) {
  if (!arch.starts_with("sm_")) return std::nullopt;
  arch.remove_prefix(3);
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
  const std::string_view suffix(end, static_cast<size_t>(arch.data() + arch.size() - end));
  if (error != std::errc() || suffix.size() > 1 || (suffix.size() == 1 && (suffix[0] < 'a' || suffix[0] > 'z'))) {
    return std::nullopt;
  }
  for (const Multiprocessor& known : kMultiprocessors) {
    if (known.architecture == number) return known;
  }
  return std::nullopt;
}

int64_t Multiprocessor::resident_blocks(const BlockUse& use) const {
  const int64_t of_a_block = std::max<int64_t>(warps_of(use), 1);
  int64_t most = std::min(blocks, warps / of_a_block);
  if (use.registers > 0) {
    const int64_t of_a_warp = rounded_up(use.registers * kWarpThreads, kRegisterUnit);
    most = std::min(most, kAllRegisters / kPartitions / of_a_warp * kPartitions / of_a_block);
  }
  const int64_t shared = rounded_up(use.shared_bytes + reserved_bytes, shared_unit);
  return shared > 0 ? std::min(most, shared_bytes / shared) : most;
}

double Multiprocessor::occupancy(const BlockUse& use) const {
  return static_cast<double>(resident_blocks(use) * warps_of(use)) / static_cast<double>(warps);
}

}  // namespace tilewright
