// Evaluate the bounds of a loop once where its body changes what they read.
//
//   Before                         After
//   for k in range(N[0]):          n: T.int32 = N[0]
//     B[k] = A[k]                  for k in range(n):
//     N[0] = 3                       B[k] = A[k]
//                                    N[0] = 3
//
// Passes that cut loops repeat the bounds: a prologue, a steady loop and an epilogue, or the parts before and behind an
// edge. Bounds that read only what the loop leaves alone stay as they are; but not those of a software pipeline, whose
// epilogue says its iterations in terms of the end: blocks inside would read what they do not declare.
//
// Needs      no views
// Ensures    a bound of a loop is the same number before, in and behind the loop
// Placement  before passes that cut loops
#include "analysis/changes.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/loops/pipeline_plan.h"
#include "lower/passes.h"

namespace tilewright::lower {

PassResult bind_loop_bounds(const Ref<PrimFunc>& func, PassContext&) {
  const analysis::MemoryNames names(func->body);
  Stmt body = rewrite(func->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    const bool is_pipeline = loop->annotations.has(kPipelineStage);
    auto is_bound = [&](const Expr& e) {
      return is_pipeline ? analysis::reads_memory(e) : analysis::may_change(names, loop->body, e);
    };
    const bool min = is_bound(loop->min), extent = is_bound(loop->extent);
    if (loop->kind == ForKind::kThreadBinding || (!min && !extent)) return r.descend(loop);
    For copy = *r.descend(loop);
    const std::string& name = loop->loop_var->name_hint;
    Ref<Var> first = var(name + "_min", loop->min.dtype()), count = var(name + "_extent", loop->extent.dtype());
    if (min) copy.min = first;
    if (extent) copy.extent = count;
    Stmt result = make(std::move(copy), loop.span());
    if (extent) result = make<LetStmt>({count, loop->extent, result}, loop.span());
    if (min) result = make<LetStmt>({first, loop->min, result}, loop.span());
    return result;
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
