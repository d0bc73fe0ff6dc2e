// Whether an index stays in a range, by linear arithmetic alone.
#pragma once

#include <unordered_map>

#include "ir/expr.h"

namespace tilewright {

/// Loops around, by variable: {min, extent}.
using LoopDomains = std::unordered_map<const NodeBase*, std::pair<Expr, Expr>>;

/// True when some iteration of the loops provably takes the index out of [min, min + extent). Whatever linear
/// arithmetic over constant loops cannot decide counts as inside.
bool leaves_range(const Expr& index, const Range& range, const LoopDomains& loops);

}  // namespace tilewright
