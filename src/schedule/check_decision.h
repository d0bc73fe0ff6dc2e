// Whether a decision fits its sampling instruction.
#pragma once

#include "schedule/trace.h"

namespace tilewright::schedule {

/// Checks a decision that a user sets; returns the error schedule/decision if it is not valid. Replay instead takes the
/// nearest valid decision, so that records of other programs stay usable. Steps without a program are not checked.
Status check_decision(const Step& step, const Value& decision);
/// Checks that an executed step made exactly this decision.
Status check_taken(const Value& decision, const Instruction& taken);

}  // namespace tilewright::schedule
