// Using what was found for one program on another that does the same work in its heaviest block (its anchor).
//
//   trace found for        dense
//   applied to             dense -> add -> relu: what follows the anchor is inlined first; steps on blocks that are not
//                          there are skipped; what stays is inlined into a write cache, or made parallel
#pragma once

#include "schedule/schedule.h"
#include "target/target.h"

namespace tilewright::search {

/// ScheduleError "trace-apply/..." where the trace does not fit, and whatever a step refuses with; the schedule may
/// have been changed by then.
Status schedule_using_anchor_trace(schedule::Schedule& schedule, const schedule::Trace& anchor, const Target& target);

}  // namespace tilewright::search
