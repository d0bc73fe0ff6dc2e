// Reduces the lanes of a vector to one value, by halves.
//
//   lanes_1 = lanes[0:32] + lanes[32:64]
//   lanes_2 = lanes_1[0:16] + lanes_1[16:32]; ...
#pragma once

#include <utility>
#include <vector>

#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::lower {

/// Annotation of an allocation of partial sums: how many there are per result.
inline constexpr const char* kPartialSums = "partial_sums";

using Bindings = std::vector<std::pair<Ref<Var>, Expr>>;

/// Combines halves of a vector, whose lanes are a power of two, until one lane is left; the steps are appended to
/// `bound`, for with_bindings() around what uses the result.
template <class Combine>
Expr join_lanes(const Expr& vector, const Combine& combine, Bindings& bound) {
  bound.emplace_back(var("lanes", vector.dtype()), vector);
  for (int lanes = vector.dtype().lanes / 2; lanes >= 1; lanes /= 2) {
    const Ref<Var> whole = bound.back().first;
    std::vector<Expr> low, high;
    for (int i = 0; i < lanes; ++i) {
      low.push_back(i32(i));
      high.push_back(i32(lanes + i));
    }
    Expr half = combine(make<Shuffle>({{whole}, low}), make<Shuffle>({{whole}, high}));
    bound.emplace_back(var("lanes", half.dtype()), half);
  }
  return bound.back().first;
}

inline Stmt with_bindings(const Bindings& bound, Stmt body) {
  for (const auto& [name, value] : reversed(bound)) body = make<LetStmt>({name, value, body});
  return body;
}

}  // namespace tilewright::lower
