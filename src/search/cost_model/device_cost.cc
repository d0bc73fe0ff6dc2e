#include "search/cost_model/device_cost.h"

#include <algorithm>
#include <cmath>

#include "analysis/loop_program.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using analysis::AccessFact;
using analysis::BufferFact;
using analysis::LoopFact;
using analysis::LoopProgram;
using analysis::LoopSum;
using analysis::LoopSums;
using analysis::StoreFact;

constexpr double kBytesPerSecond = 1e12;  // bandwidth of main memory
constexpr double kSharedBytesPerSecond = 1.5e13;
constexpr double kOperationsPerSecond = 2e13;
constexpr double kElementaryOperations = 16;  // cost of exp and the like, in additions
constexpr double kProcessors = 64;            // multiprocessors that blocks are distributed to
constexpr double kThreadsOfProcessor = 512;   // threads that hide the latency of memory
constexpr double kWarp = 32;
constexpr double kSector = 32;                 // bytes that memory transfers at least
constexpr double kBanks = 32, kBankBytes = 4;  // banks of shared memory

/// One store with the loops around it.
class StoreOnDevice {
 public:
  StoreOnDevice(LoopProgram& program, const StoreFact& store) : program_(program), loops_(program.nest(store.loop)) {
    for (int l : loops_) {
      const LoopFact& loop = program.loops[l];
      const double count = static_cast<double>(std::max<int64_t>(loop.count(), 1));
      const bool once = store.is_init && store.reduction & analysis::level_bit(loop.depth);
      iterations *= once ? 1 : count;
      if (loop.thread_tag.starts_with("blockIdx")) blocks *= count;
      if (!loop.thread_tag.starts_with("threadIdx")) continue;
      threads *= count;
      if (loop.thread_tag == "threadIdx.x") lane_ = l;
    }
  }

  double iterations = 1, blocks = 1, threads = 1;

  /// Executions of an access: a value that inner loops do not change stays in a register.
  double executions(const AccessFact& access) const {
    double all = 1, count = 1;
    for (int l : loops_) {
      const LoopFact& loop = program_.loops[l];
      all *= static_cast<double>(std::max<int64_t>(loop.count(), 1));
      const auto moves = [&](const LoopSum& index) {
        return (program_.sums.levels(index) & analysis::level_bit(loop.depth)) != 0;
      };
      if (!loop.thread_tag.empty() || any_of(access.index, moves)) count = all;
    }
    return count;
  }

  /// Elements between what neighbors of a warp access; nothing where there is one thread along x.
  std::optional<double> lane_step(const AccessFact& access) {
    if (lane_ < 0) return {};
    const BufferFact& buffer = program_.buffers[access.buffer];
    // Take the step of the flat offset: indices such as (f // 4, f % 4) are contiguous.
    LoopSum place = LoopSums::constant(0);
    int64_t size = 1;
    for (size_t d = access.index.size(); d-- > 0;) {
      place = program_.sums.add(place, access.index[d], size);
      size *= std::max<int64_t>(buffer.shape[d], 1);
    }
    return std::fabs(static_cast<double>(program_.sums.step_of(place, program_.loops[lane_].atom)));
  }

 private:
  LoopProgram& program_;
  std::vector<int> loops_;
  int lane_ = -1;
};

/// Bytes that main memory transfers for an element of an access.
double transferred(std::optional<double> step, double bytes) {
  if (!step) return std::max(bytes, kSector);
  return *step == 0 ? bytes / kWarp : std::min(*step * bytes, std::max(bytes, kSector));
}

/// Returns how many times the banks of shared memory serve a warp.
double conflicts(std::optional<double> step, double bytes) {
  if (!step || *step == 0) return 1;
  const auto words = static_cast<int64_t>(std::max(1.0, *step * bytes / kBankBytes));
  int64_t way = 1;
  while (way < static_cast<int64_t>(kBanks) && words % (2 * way) == 0) way *= 2;
  return static_cast<double>(way);
}

}  // namespace

DeviceCost estimate_device_cost(const Ref<Module>& module) {
  LoopProgram program = analysis::loop_program(module);
  DeviceCost cost;
  double weight = 0, utilization = 0;
  for (const StoreFact& store : program.stores) {
    StoreOnDevice nest(program, store);
    double memory = 0, shared = 0;
    for (const AccessFact& access : store.accesses) {
      const BufferFact& buffer = program.buffers[access.buffer];
      const std::string scope = buffer.buffer->scope();
      const double bytes = buffer.element_bytes(), count = nest.executions(access);
      const auto step = nest.lane_step(access);
      if (scope.starts_with("global")) memory += count * transferred(step, bytes);
      if (scope.starts_with("shared")) shared += count * bytes * conflicts(step, bytes);
    }
    const double work = store.work.all_floats() + kElementaryOperations * store.work.elementary + 1;
    const double seconds[] = {memory / kBytesPerSecond, shared / kSharedBytesPerSecond,
                              nest.iterations * work / kOperationsPerSecond};
    // The last wave of blocks may leave processors idle, and few threads wait for memory together.
    const double waves = nest.blocks / (std::ceil(nest.blocks / kProcessors) * kProcessors);
    const double resident =
        std::min(1.0, nest.threads * std::max(1.0, nest.blocks / kProcessors) / kThreadsOfProcessor);
    const double warps = nest.threads / (std::ceil(nest.threads / kWarp) * kWarp);
    const double used = waves * resident * warps;
    const double most = *std::ranges::max_element(seconds);
    cost.memory += seconds[0];
    cost.shared += seconds[1];
    cost.compute += seconds[2];
    cost.seconds += (most + 0.2 * (seconds[0] + seconds[1] + seconds[2] - most)) / used;
    weight += most;
    utilization += most * used;
  }
  if (weight > 0) cost.utilization = utilization / weight;
  return cost;
}

}  // namespace tilewright::search
