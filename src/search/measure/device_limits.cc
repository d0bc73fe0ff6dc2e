#include "search/measure/device_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/c_writer/c_writer.h"
#include "codegen/kernel_sizes.h"
#include "target/multiprocessor.h"

namespace tilewright::search {
namespace {

Status check_kernel(const codegen::KernelUse& use, const codegen::KernelSizes& sizes) {
  if (use.spill_stores > kMostSpilledBytes) {
    return resource_error("measure/spills",
                          fmt::format("a thread of kernel {} spills {} bytes of registers on {}, more than {}",
                                      use.kernel, use.spill_stores, use.arch, kMostSpilledBytes),
                          "give threads smaller tiles");
  }
  const auto holder = Multiprocessor::of(use.arch);
  // The compiler does not report shared memory that a launch allocates.
  const BlockUse block{sizes.threads, use.registers, std::max(use.shared_bytes, sizes.shared_bytes.value_or(0))};
  if (!holder || holder->resident_blocks(block) > 0) return Ok{};
  return resource_error("measure/occupancy",
                        fmt::format("no block of kernel {} fits on a multiprocessor of {}: it has {} threads of {} "
                                    "registers, and {} bytes of shared memory",
                                    use.kernel, use.arch, block.threads, block.registers, block.shared_bytes),
                        "use smaller blocks, or smaller tiles in shared memory");
}

}  // namespace

Status check_device_limits(const Ref<Module>& lowered, const codegen::CudaProgram& program) {
  std::map<std::string, codegen::KernelSizes> known;
  for (codegen::KernelSizes& sizes : codegen::kernel_sizes(lowered)) {
    const std::string symbol = codegen::kernel_symbol(sizes.kernel);
    known.emplace(symbol, std::move(sizes));
  }
  std::map<std::string, Status> by_arch;
  for (const codegen::KernelUse& use : program.uses) {
    Status& status = by_arch.try_emplace(use.arch, Ok{}).first->second;
    auto sizes = known.find(use.kernel);
    if (status.ok() && sizes != known.end()) status = check_kernel(use, sizes->second);
  }
  // The device may be of either architecture.
  for (const auto& [arch, status] : by_arch) {
    if (status.ok()) return Ok{};
  }
  return by_arch.empty() ? Status(Ok{}) : by_arch.begin()->second;
}

}  // namespace tilewright::search
