// Finds a witness, values of the loops around an access for which it certainly happens and violates a rule, such as the
// bounds of a buffer. The search tries some iterations; if it finds no witness, nothing is proved.
//
//   for i in range(8):
//     if i > 2: B[i + 1] = ...        where i + 1 >= 8?   at i = 7
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/accesses.h"

namespace tilewright::analysis {

/// Values of some variables.
class Point {
 public:
  std::optional<int64_t> get(const NodeRef& variable) const;
  void set(const NodeRef& variable, int64_t value) { values_.emplace_back(variable.get(), value); }
  void clear() { values_.clear(); }

 private:
  std::vector<std::pair<const NodeBase*, int64_t>> values_;  ///< the last one counts
};

/// Evaluates an integer or a condition. Returns nothing if it depends on memory or on a variable without a value, or
/// overflows its type.
std::optional<int64_t> evaluate(const Expr& e, const Point& point);

/// Returns an iteration that certainly runs and that `accept` accepts. `goals`: expressions that tend to be large in
/// such iterations, which guide the search.
std::optional<Point> find_iteration(Surroundings around, const std::vector<Expr>& goals,
                                    const std::function<bool(const Point&)>& accept);

/// "i = 7, j = 0": the loops of the iteration.
std::string loops_of(Surroundings around, const Point& point);

}  // namespace tilewright::analysis
