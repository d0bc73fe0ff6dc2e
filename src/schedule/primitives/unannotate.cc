// Remove an annotation.
//
//   Before                                                         After  sch.unannotate(i, "pragma_unroll")
//   for i in T.serial(8, annotations={"pragma_unroll": 4}):        for i in range(8):
//     with T.block("B"):                                             with T.block("B"):
//       vi = T.axis.spatial(8, i)                                      vi = T.axis.spatial(8, i)
//       B[vi] = A[vi]                                                  B[vi] = A[vi]
//
// Requires  P1 the key is there
#include "schedule/primitives/unannotate.h"

#include "schedule/annotations.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const Unannotate& unannotate) {
  TW_TRY(where, find_annotated(state, unannotate.block_or_loop));
  Annotations annotations = where.annotations();
  if (!annotations.has(unannotate.ann_key)) {
    std::string keys;
    for (const auto& [key, value] : annotations.entries()) keys += (keys.empty() ? "" : ", ") + key;
    return refuse("unannotate/P1", where.describe() + " has no annotation '" + unannotate.ann_key + "'", {where.node()},
                  keys.empty() ? "it has none at all" : "its annotations are: " + keys);
  }
  annotations.erase(unannotate.ann_key);
  return where.with(state, std::move(annotations));
}

}  // namespace tilewright::schedule
