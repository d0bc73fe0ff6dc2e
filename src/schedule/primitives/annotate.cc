// Attach a value to a block, a loop, or an iteration over sparse axes.
//
//   Before                                After  sch.annotate(i, "pragma_unroll", 4)
//   for i in range(8):                    for i in T.serial(8, annotations={"pragma_unroll": 4}):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(8, i)             vi = T.axis.spatial(8, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// Requires  P1 the key is free, or holds that value already
//           P2 the value is made of strings, numbers, lists and dicts
#include "schedule/primitives/annotate.h"

#include "ir/structural.h"
#include "schedule/annotations.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const Annotate& annotate) {
  TW_TRY(where, find_annotated(state, annotate.block_or_loop));
  std::optional<NodeRef> value = annotation_value(state, annotate.ann_val);
  if (!value) {
    return refuse("annotate/P2", "an annotation cannot hold " + annotate.ann_val.kind(), {},
                  "pass strings, integers, floats, sampled values, or lists and dicts of these");
  }
  if (NodeRef present = where.annotations().get(annotate.ann_key); present.defined()) {
    if (structural_equal(present, *value)) return Plan{};
    return refuse("annotate/P1", where.describe() + " already has an annotation '" + annotate.ann_key + "'",
                  {where.node()}, "remove it first: sch.unannotate(..., \"" + annotate.ann_key + "\")");
  }
  Annotations annotations = where.annotations();
  annotations.set(annotate.ann_key, *value);
  return where.with(state, std::move(annotations));
}

}  // namespace tilewright::schedule
