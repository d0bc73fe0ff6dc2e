// Selects the processors for measuring and for building.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::search {

struct CpuPlan {
  std::vector<int32_t> measure;  ///< one for each thread of the kernel, or all there are
  std::vector<int32_t> build;
  /// Whether no processor is left for building: building and measuring alternate.
  bool exclusive = false;
};

/// `cores`: for each processor this process may use, its number and the number of its physical core. Kernels get one
/// processor of each physical core first, from the end (interrupts tend to be served by the first ones); builders get
/// what shares no core with them, or whatever is left.
struct Processor {
  int32_t cpu = 0, core = 0;
};
CpuPlan plan_cpus(std::vector<Processor> processors, int threads);

/// Returns the processors of this process, from its affinity mask and /sys.
std::vector<Processor> usable_processors();

}  // namespace tilewright::search
