// Whether a decision fits the draw that it is for.
#pragma once

#include "schedule/trace.h"

namespace tilewright::schedule {

/// Draws take the nearest where a decision does not fit, so that records of other programs stay usable. Who decides by
/// hand is told: ArgumentError "schedule/decision". Nothing is checked of a step that does not know its program.
Status check_decision(const Step& step, const Value& decision);
/// Of a step that has been taken: it took this very decision.
Status check_taken(const Value& decision, const Instruction& taken);

}  // namespace tilewright::schedule
