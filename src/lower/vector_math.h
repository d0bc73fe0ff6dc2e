// Expressions on ramps and broadcasts, kept in the form that says most: the sum of a ramp and a broadcast is a ramp.
#pragma once

#include <functional>

#include "ir/build.h"

namespace tilewright::lower {

/// As binary() of ir/build.h, for any mix of lanes.
Expr vector_binary(Kind kind, const Expr& a, const Expr& b);
/// A scalar in every lane; a vector as it is.
Expr to_lanes(const Expr& value, int lanes);

/// The statement with variables replaced and constants folded on the way.
Stmt substitute_folding(const Stmt& body, const Ref<Var>& v, const Expr& value);

}  // namespace tilewright::lower
