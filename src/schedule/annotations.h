// Annotations of loops and blocks, as primitives read and replace them.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

const Annotations& annotations_of(const Place& place);
/// The function's new root, with other annotations at the place.
Ref<Block> with_annotations(const Place& place, Annotations annotations);
/// The node for an annotation's value: integers become int32 (int64 where they do not fit), floats float32, sampled
/// values the number drawn. Nothing for a handle or None.
std::optional<NodeRef> annotation_value(const State& state, const Value& value);

}  // namespace tilewright::schedule
