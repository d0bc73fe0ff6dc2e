// Computes which instances of a block access a given region of a buffer, as sets of axis values. compute_at uses it to
// find the instances whose results one iteration of the target loop reads.
//
//   B[vi * 4 + vj], vj in [0, 4), and the box [i * 8, i * 8 + 7]      =>  vi in [i * 2, i * 2 + 1]
#pragma once

#include <vector>

#include "arith/int_set.h"
#include "ir/stmt.h"

namespace tilewright::schedule {

/// Per axis of a block, the set of its values; an unbounded set stands for the whole domain. Bounds may depend on loops
/// around the new location and on other axes of the block.
using AxisSets = arith::Box;

/// Which instances are selected by a box of a buffer.
enum class Fit {
  kTouch,   ///< instances whose region has an element in the box
  kWithin,  ///< instances whose region is in the box
};

/// Returns sets of axis values for the instances of the block whose `region` fits `box`: a superset for kTouch, a
/// subset for kWithin if the index expressions are understood. Axes that no dimension restricts stay unbounded. The
/// result is a proposal; finish_move() of relocate.h checks that the program with it is correct.
AxisSets solve_axes(const Block& block, const Ref<BufferRegion>& region, const arith::Box& box, Fit fit,
                    arith::Analyzer& analyzer);

/// A term of a sum or difference.
struct Term {
  Expr value;
  bool negative;
};
std::vector<Term> terms_of(const Expr& sum);

}  // namespace tilewright::schedule
