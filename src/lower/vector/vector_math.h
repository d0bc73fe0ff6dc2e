// Expressions on ramps and broadcasts, kept in the form that says most: the sum of a ramp and a broadcast is a ramp.
#pragma once

#include <functional>

#include "ir/build.h"
#include "target/target.h"

namespace tilewright::lower {

/// Wider vectors are taken apart by the code generator into as many instructions, at a cost in build time.
constexpr int64_t kMostRegisters = 8;
/// Number of vectors in flight that hides latencies in loops that are cut.
constexpr int64_t kCutRegisters = 4;

/// Bits of the widest element that the body of a loop touches: what decides how many lanes a register has.
int widest_element(const Stmt& body);
/// Elementary functions need many registers for themselves: several vectors at once would only be spilled.
bool calls_elementary_function(const Stmt& body);

/// Whether the processor loads and stores vectors of this element under a condition for each lane; else these are
/// branches.
bool has_masks(const Target& target, DataType type);

bool divides(Kind kind);
/// Like binary() of ir/build.h, for any mix of lanes. A division by the constant 0 that a condition skips gives some
/// number, as in a kernel whose divisor is not constant.
Expr vector_binary(Kind kind, const Expr& a, const Expr& b);
/// The bits of the value, read as another type.
Expr bits_as(DataType type, Expr value);
/// A scalar in every lane; a vector as it is.
Expr to_lanes(const Expr& value, int lanes);

/// The statement with variables replaced and constants folded on the way.
Stmt substitute_folding(const Stmt& body, const Ref<Var>& v, const Expr& value);

}  // namespace tilewright::lower
