// Estimates the time of a program from the limits of a processor: vector ports, loads and stores, registers, caches,
// threads.
//
// A roofline model with caches. It reads the loops and accesses of analysis/loop_program.h, and estimates each store
// separately:
//   - vectorization: the loop that the back end vectorizes (the annotated one, or the innermost one with contiguous
//     accesses), and the instructions per vector. Loads that are invariant in an unrolled loop count once.
//   - compute: throughput of the multiply-add ports, or the latency of a chain of additions if there are too few
//     independent accumulators; throughput of loads, stores and gathers; spills of accumulators beyond the registers.
//   - memory: the bytes transferred into each cache. Loops in which data are invariant reuse them, if the data of their
//     bodies fit into the cache. Rows at distances that are multiples of 4096 bytes conflict in few cache sets.
//   - threads: load balance of parallel chunks over cores, and the overhead of starting them.
// The time of a store is the maximum of compute and memory, plus loop overhead. The model ranks schedules of one
// program; it does not predict absolute times.
#pragma once

#include "ir/stmt.h"
#include "search/cost_model/cost_model.h"
#include "target/machine_model.h"
#include "target/target.h"

namespace tilewright::search {

/// Where the time of a program goes.
struct CostEstimate {
  double seconds = 0;
  double compute = 0, memory = 0, overhead = 0;  ///< seconds, of all stores together
  double spilled_registers = 0;                  ///< maximum over all stores
  double parallel_chunks = 1;
  using Members = Fields<&CostEstimate::seconds, &CostEstimate::compute, &CostEstimate::memory, &CostEstimate::overhead,
                         &CostEstimate::spilled_registers, &CostEstimate::parallel_chunks>;
};

CostEstimate estimate_cost(const Ref<Module>& module, const Target& target, const MachineModel& machine = {});

/// A cost model without training: update() does nothing. Scores are estimated calls per second.
class AnalyticalModel final : public CostModel {
 public:
  Status load(const std::string& path) override;
  Status save(const std::string& path) override;
  Status update(const TuneContext& context, const MeasureCandidates& candidates, const RunnerResults& results) override;
  Result<std::vector<double>> predict(const TuneContext& context, const MeasureCandidates& candidates) override;
};

}  // namespace tilewright::search
