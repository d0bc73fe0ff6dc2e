// Matches a block with the description of a tensor intrinsic: whether it computes the same, and which regions of the
// program's buffers stand for the description's buffers. tensorize uses it.
//
//   description  C[i] + A[k] * B[i, k]           block  C[vi_o * 16 + i] + A[vk_o * 4 + k] * W[j, vk_o, i, k]
//   match        C is C from [vi_o * 16] on, A is A from [vk_o * 4] on, B is W from [j, vk_o, 0, 0] on
//
// An index that is an element of an array, B[I[k]], matches one that is: I is a part of the array then, and the values
// of its elements select from all of the dimension.
//
// Both are traversed together. Loops of one iteration may exist on one side only, integers are compared by value, and
// sums and products in either order. The first other difference is the reason why there is no match.
#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include "arith/analyzer.h"
#include "ir/stmt.h"

namespace tilewright::schedule {

/// A buffer of the description is this part of a buffer of the program: one index a dimension of `buffer`, of which the
/// last ones are those of the description.
struct Part {
  Ref<Buffer> buffer;
  std::vector<Expr> start;
  std::vector<bool> gathered = {};  ///< dimensions whose index is an element of an array on both sides; they start at 0
};
using Parts = std::unordered_map<NodeRef, Part>;

struct Difference {
  std::string why;
  NodeRef where;  ///< in the program; null for all of the block
};

/// Matches `body`, of the program, with `desc`. The analyzer must know the loops around the body.
std::variant<Parts, Difference> match_description(const Stmt& body, const Stmt& desc, arith::Analyzer& analyzer);

}  // namespace tilewright::schedule
