// Index expressions that put digits of loop variables together by constants, as splits, fusions and reorders leave
// them:
//
//   i in [0, 16), j in [0, 4):    n + (i // 2 * 4 + j) * 8    the digits i // 2 % 8 and j % 4, scaled by 32 and 8, and
//   n
//
// Most questions that a schedule asks are about these, and are decided here without building an expression. What is not
// of this form, or not decided, is left to iter_map.h and int_set.h: no answer is never a "no".
#pragma once

#include <optional>
#include <vector>

#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "support/inline_vector.h"

namespace tilewright::arith {

/// var // lower % extent * scale, where all values of the digit occur: extent is above 1.
struct Digit {
  const NodeBase* var;
  int64_t lower, extent, scale;
};
/// value * scale, which mentions no input variable.
struct FixedTerm {
  Expr value;
  int64_t scale;
};
using Digits = InlineVector<Digit, 6>;
using FixedTerms = InlineVector<FixedTerm, 2>;
/// The sum of the digits, the terms and the constant.
struct DigitSum {
  Digits digits;
  FixedTerms fixed;
  int64_t constant = 0;
};

/// A variable that runs over [0, extent), which holds a value.
struct Counter {
  const NodeBase* var;
  int64_t extent;
};
using Counters = InlineVector<Counter, 16>;
/// Returns nothing if a range does not start at 0, or if its extent is not constant.
std::optional<Counters> counters_of(const IterDomains& inputs);
/// Adds one for a loop over that range; false where it is not of this kind.
bool add_counter(Counters& counters, const Ref<Var>& var, const Expr& min, const Expr& extent);

/// Each of the expressions by its digits, which are independent of one another: all combinations of their values occur.
std::optional<std::vector<DigitSum>> independent_digits(const std::vector<Expr>& exprs, const Counters& inputs);
std::optional<std::vector<DigitSum>> independent_digits(const std::vector<Expr>& exprs, const IterDomains& inputs);

/// Whether the map is bijective onto its box with positive scales only (IterMapLevel::kBijective).
bool plainly_one_to_one(const std::vector<Expr>& values, const Counters& inputs);
bool plainly_one_to_one(const std::vector<Expr>& values, const IterDomains& inputs);
/// Whether a map is injective. kNo: it is proved not to be.
enum class Injectivity { kYes, kNo, kUnknown };
/// The injectivity of the map from the inputs to the values.
Injectivity injectivity_of(const std::vector<Expr>& values, const Counters& inputs);

/// Variables that stand for the values beside them.
struct Bindings {
  const std::vector<Ref<IterVar>>& axes;
  const std::vector<Expr>& values;
};
/// The range from the sum of the terms and `first` to that of the terms and `last`.
struct Reach {
  FixedTerms fixed;
  int64_t first, last;
};
/// Whether inner is inside of outer in each dimension, for all values of the variables `around`.
bool is_inside(const std::vector<Reach>& inner, const std::vector<Reach>& outer, const Counters& around);
/// Per dimension, the interval of the elements that `region` touches. The axes of the region are bound.
std::optional<std::vector<Reach>> plain_reach(const Region& region, const Bindings& bindings, const Counters& inputs);
/// The interval if each of these elements is accessed; with all combinations of the values of `others`, which
/// come as further dimensions.
std::optional<std::vector<Reach>> plain_cover(const Region& region, const std::vector<Expr>& others,
                                              const Bindings& bindings, const Counters& inputs);

/// The smallest box that holds all elements that `region` touches.
std::optional<Box> plain_hull(const Region& region, const Counters& inputs);
/// The box of all elements that `region` touches: each of them is touched.
std::optional<Box> plain_box(const Region& region, const Counters& inputs);
std::optional<Box> plain_box(const Region& region, const IterDomains& inputs);

}  // namespace tilewright::arith
