// Estimates the time of a program from the limits of a processor: vector ports, loads and stores, registers, caches,
// threads.
//
// The model reads the table of loops and accesses of analysis/loop_program.h and judges each store by itself:
//   - which loop the back end makes vectors of (one that asks for it, else the innermost that runs through memory), and
//     what the other loops repeat for each vector: loads that do not move with a loop that is unrolled are shared;
//   - compute: cycles of the multiply-add ports, or the latency of a chain of additions where too few are independent;
//     loads, stores and gathers by their ports; accumulators beyond the registers are spilled;
//   - memory: for each cache, the bytes that cross its border: a loop whose data fit lets all outer ones that do not
//   move
//     on find them there; rows whose distance is a multiple of 4096 bytes share the few places of a cache;
//   - threads: parallel chunks by the number of cores, and what starting them takes.
// Seconds are the larger of compute and memory, plus what loops cost. Good for comparing schedules of one program.
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
  double spilled_registers = 0;                  ///< at the worst place
  double parallel_chunks = 1;
  using Members = Fields<&CostEstimate::seconds, &CostEstimate::compute, &CostEstimate::memory, &CostEstimate::overhead,
                         &CostEstimate::spilled_registers, &CostEstimate::parallel_chunks>;
};

CostEstimate estimate_cost(const Ref<Module>& module, const Target& target, const MachineModel& machine = {});

/// Needs no measurements and learns nothing. A score is calls a second.
class AnalyticalModel final : public CostModel {
 public:
  Status load(const std::string& path) override;
  Status save(const std::string& path) override;
  Status update(const TuneContext& context, const MeasureCandidates& candidates, const RunnerResults& results) override;
  Result<std::vector<double>> predict(const TuneContext& context, const MeasureCandidates& candidates) override;
};

}  // namespace tilewright::search
