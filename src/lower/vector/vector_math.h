// Arithmetic on vector expressions that keeps ramps and broadcasts symbolic, so that later passes recognize contiguous
// and uniform accesses: ramp(i * 16, 1, 16) + broadcast(k, 16) becomes ramp(i * 16 + k, 1, 16). Used by the
// vectorizers.
#pragma once

#include <functional>

#include "ir/build.h"
#include "target/target.h"

namespace tilewright::lower {

/// The most vector registers that one vector value may span. LLVM splits wide vectors into one instruction per
/// register, which costs build time.
constexpr int64_t kMostRegisters = 8;
/// Number of registers per strip of a strip-mined loop: enough independent vectors to hide latencies.
constexpr int64_t kCutRegisters = 4;

/// Returns the bits of the widest element that the body of a loop accesses, which determines the lanes per register.
int widest_element(const Stmt& body);
/// Whether the body calls an elementary function such as exp. Their polynomials need many registers, so that several
/// vectors in flight would be spilled.
bool calls_elementary_function(const Stmt& body);

/// Whether the target has masked loads and stores of this element type. Without them, a lane mask becomes branches.
bool has_masked_access(const Target& target, DataType type);

bool is_division(Kind kind);
/// Like binary() of ir/build.h, for operands with different numbers of lanes. A division by the constant 0, which a
/// condition in the program must skip, becomes 0.
Expr vector_binary(Kind kind, const Expr& a, const Expr& b);
/// Reinterprets the bits of the value as another type.
Expr bits_as(DataType type, Expr value);
/// Broadcasts a scalar; returns a vector unchanged.
Expr to_lanes(const Expr& value, int lanes);

/// Replaces a variable in the statement, and folds constants and branches.
Stmt substitute_folding(const Stmt& body, const Ref<Var>& v, const Expr& value);

}  // namespace tilewright::lower
