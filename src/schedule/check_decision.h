// Whether a decision fits its sampling instruction.
#pragma once

#include "schedule/trace.h"

namespace tilewright::schedule {

/// Replay takes the nearest valid decision where one does not fit, so that records of other programs stay usable. Those
/// that a user sets are checked instead: ArgumentError "schedule/decision". Steps without a program are not checked.
Status check_decision(const Step& step, const Value& decision);
/// Checks that a step that was executed made this very decision.
Status check_taken(const Value& decision, const Instruction& taken);

}  // namespace tilewright::schedule
