// Instructions of a trace that need iterations over sparse axes.
#pragma once

#include "schedule/instruction.h"

namespace tilewright::schedule {

/// Whether instructions of a kind act on iterations over sparse axes, which loops and blocks replace later: its
/// aggregate has a member kOnIterations.
bool is_on_iterations(const KindInfo& kind);

}  // namespace tilewright::schedule
