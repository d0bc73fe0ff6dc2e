// From schedules with decisions to candidates that can be measured. Shared by the strategies.
#pragma once

#include <optional>
#include <vector>

#include "search/space/space_generator.h"
#include "search/strategy/refusals.h"
#include "search/strategy/search_strategy.h"
#include "search/strategy/thread_bounds.h"

namespace tilewright::search {

/// Returns the schedule after all postprocessors; nothing (and counts a refusal) if one refuses. Thread-safe.
std::optional<Schedule> postprocessed(Schedule schedule, const Postprocs& postprocs, Refusals& refusals);
/// Returns the thread bounds of each design space if VerifyGPUCode is among the postprocessors; else bounds that all
/// decisions satisfy.
std::vector<ThreadBounds> bounds_of(const Schedules& spaces, const Postprocs& postprocs,
                                    const std::optional<Target>& target);
/// Resamples all decisions, within the bounds. Returns nothing (and counts a refusal) if a step is refused then.
std::optional<Schedule> resampled(const Schedule& schedule, const ThreadBounds& bounds, Random random,
                                  Refusals& refusals);

/// Returns a random mutator, chosen with its relative probability. Returns null, for no mutation, with probability
/// 1 - mutate_prob, and if there are no mutators.
const Mutator* sample_mutator(const Mutators& mutators, double mutate_prob, Random& random);

/// Returns the arguments of a kernel of the program; empty if they need sizes or numbers from the user.
std::vector<ArgInfo> args_of(const Ref<Module>& module);
MeasureCandidates as_candidates(Schedules schedules, const std::vector<ArgInfo>& args);

}  // namespace tilewright::search
