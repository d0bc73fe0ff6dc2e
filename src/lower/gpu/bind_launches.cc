// Make loops of the threads that attributes launch, as T.launch_thread writes them.
//
//   Before                                    After
//   bx = T.launch_thread("blockIdx.x", 4)     for bx in T.thread_binding(4, thread="blockIdx.x"):
//   tx = T.launch_thread("threadIdx.x", 32)     for tx in T.thread_binding(32, thread="threadIdx.x"):
//   B[bx, tx] = A[bx, tx]                         B[bx, tx] = A[bx, tx]
//
// An axis that is launched again, inside of its own launch or behind it, is bound by a loop of its own.
//
// Ensures    no "thread_extent" or "virtual_thread"
// Placement  first: the passes behind look for threads in loops
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"

namespace tilewright::lower {

PassResult bind_launches(const Ref<PrimFunc>& func, PassContext&) {
  return with_body(func, rewrite(func->body, [](const Ref<AttrStmt>& attr, Rewriter& r) -> Stmt {
                     const IterVar* axis = attr->node.as<IterVar>();
                     const bool launches = attr->attr_key == "thread_extent" || attr->attr_key == "virtual_thread";
                     if (!axis || !launches || !attr->value.defined() || attr->value.sort() != Sort::kExpr)
                       return r.descend(attr);
                     const Ref<Var> v = var(axis->var->name_hint, axis->var.dtype());
                     Stmt body = substitute(r(attr->body), {{axis->var, v}});
                     return bound_loop(v, Expr(attr->value), axis->thread_tag, std::move(body), attr.span());
                   }));
}

}  // namespace tilewright::lower
