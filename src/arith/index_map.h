// Maps of indices: what they make of indices and of shapes, and the way back.
//
//   lambda i: (i // 4, i % 4) of an array of 14 elements gives one of shape (4, 4), whose elements (3, 2) and (3, 3)
//   stand for none of the old ones: the padding. The way back is lambda i, j: i * 4 + j.
#pragma once

#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "support/result.h"

namespace tilewright::arith {

/// The map with indices of that type; constants and other variables follow.
Ref<IndexMap> with_index_type(const IndexMap& map, DataType type);

/// Returns the images of the indices; there are as many `indices` as the map takes.
std::vector<Expr> map_indices(const IndexMap& map, const std::vector<Expr>& indices, Analyzer& analyzer);

/// The box of the images of a box; null where they are no box, or where that cannot be proved. The map is taken to be
/// one to one.
std::vector<Ref<Range>> map_region(const IndexMap& map, const std::vector<Ref<Range>>& region, Analyzer& analyzer);

struct InvertedMap {
  std::vector<Expr> shape;  ///< shape of the image, which starts at 0
  Ref<IndexMap> inverse;    ///< new indices to old ones; for padding they are outside the old shape
  Expr padding;        ///< condition on the inverse's initial indices that they are no image; false: every point is one
  bool holes = false;  ///< other elements have no preimage either, as with i * 2; `padding` omits them
};

/// Inverts a map of indices from 0 to `shape`. It consists of +, -, *, // and %, and takes different indices to
/// different ones; sizes that it divides by are taken to be positive. ArgumentError "index-map/..." where that is not
/// so or cannot be proved.
Result<InvertedMap> invert(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer);

/// An extent of what an array of this shape becomes, where the array may have no elements: `i * 2` of none would give
/// -1.
Expr not_negative(const Expr& extent, const std::vector<Expr>& shape);

/// Whether numbers in the extent make a number that its type does not hold: the extents of 46341 * 46341 elements.
bool leaves_type(const Expr& extent);

/// The extents of the images; none where they have no known ends, or leave their type.
std::vector<Expr> map_shape(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer);

/// Whether both are proved to map all indices in the same way.
bool equivalent(const IndexMap& a, const IndexMap& b);

}  // namespace tilewright::arith
