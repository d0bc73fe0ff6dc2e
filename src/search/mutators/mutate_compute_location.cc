// Mutates where a block is computed: takes another location that sample_compute_location() could have sampled.
#include "schedule/compute_locations.h"
#include "schedule/primitives/sample_compute_location.h"
#include "search/mutators/mutators.h"

namespace tilewright::search {
namespace {

using schedule::SampleComputeLocation;
using schedule::Value;

/// Each step that samples a location, with all other locations; `trace` is the record of a schedule.
Result<std::vector<std::pair<size_t, std::vector<int64_t>>>> alternatives(const Trace& trace) {
  std::vector<std::pair<size_t, std::vector<int64_t>>> result;
  for (size_t step : trace.sampling_steps()) {
    const auto* sample = trace[step].instruction.as<SampleComputeLocation>();
    if (!sample) continue;
    TW_TRY(places, schedule::compute_locations(*trace[step].before, sample->block));
    std::erase(places, sample->decision.value.value_or(-1));
    if (!places.empty()) result.emplace_back(step, std::move(places));
  }
  return result;
}

bool knows_its_states(const Trace& trace) {
  for (size_t step : trace.sampling_steps()) {
    if (!trace[step].before) return false;
  }
  return true;
}

}  // namespace

Status MutateComputeLocation::initialize(const TuneContext& context) {
  module_ = context.module;
  return Ok{};
}

Result<std::optional<Trace>> MutateComputeLocation::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  bool samples_locations = false;
  for (size_t step : trace.sampling_steps()) {
    samples_locations |= trace[step].instruction.is<SampleComputeLocation>();
  }
  if (!samples_locations) return std::optional<Trace>();
  if (!knows_its_states(trace)) {
    if (!module_.defined()) {
      return argument_error("search/no-module", "MutateComputeLocation replays a trace, but has no program to do it on",
                            "initialize it by a TuneContext with a module");
    }
    TW_TRY(replayed, schedule::Schedule::make(module_));
    TW_RETURN_IF_ERROR(schedule::replay(trace, replayed));
    trace = replayed.trace();
  }
  TW_TRY(all, alternatives(trace));
  if (all.empty()) return std::optional<Trace>();
  const auto& [step, places] = all[random.below(all.size())];
  TW_TRY(mutated, trace.with_decision(step, Value{places[random.below(places.size())]}));
  return std::optional<Trace>(std::move(mutated));
}

}  // namespace tilewright::search
