// <One sentence: what happens to the program.>
//
//   Before                         After
//   <at most 8 lines>              <the same program afterwards>
//
// Needs      <what earlier passes have ensured>
// Ensures    <what later passes may rely on>
// Placement  <after what, before what, and why>
#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {

PassResult @name@(const Ref<PrimFunc>& func, PassContext&) {
  Stmt body = rewrite(func->body, [&](const Ref<<kind of node>>& node, Rewriter& r) -> Stmt { <the new statement>; });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
