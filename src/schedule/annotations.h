// Annotations of loops, blocks and iterations over sparse axes, as primitives read and replace them.
#pragma once

#include "schedule/sparse_nest.h"

namespace tilewright::schedule {

/// A loop, a block or a sparse iteration, which carries annotations.
class Annotated {
 public:
  explicit Annotated(Place place) : where_(place) {}
  explicit Annotated(SparseNest nest) : where_(std::move(nest)) {}

  const Annotations& annotations() const;
  NodeRef node() const;
  /// "loop 'i' (extent 100)", "block 'C'", "the iteration 'spmm'".
  std::string describe() const;
  /// The program with other annotations there.
  Plan with(const State& state, Annotations annotations) const;

 private:
  std::variant<Place, SparseNest> where_;
};
/// The iteration, loop or block of a handle.
Result<Annotated> find_annotated(const State& state, const BlockOrLoop& rv);

const Annotations& annotations_of(const Place& place);
/// The function's new root, with other annotations at the place.
Ref<Block> with_annotations(const Place& place, Annotations annotations);

/// The node for an annotation's value: integers become int32 (int64 where they do not fit), floats float32, sampled
/// values their current number. Nothing for a handle or None.
std::optional<NodeRef> annotation_value(const State& state, const Value& value);

}  // namespace tilewright::schedule
