// Turn the initialization of a reduction into a conditional first step of the block.
//
//   Before                                  After
//   with T.block("C"):                      with T.block("C"):
//     vi, vk = T.axis.remap("SR", [i, k])     vi, vk = T.axis.remap("SR", [i, k])
//     with T.init():                          if vk == 0:
//       C[vi] = 0.0                             C[vi] = 0.0
//     C[vi] += A[vi, vk]                      C[vi] = C[vi] + A[vi, vk]
//
// Needs      blocks with axes
// Ensures    no block has an init
// Placement  before axes are replaced by loops: "first" is when every reduction axis is at the start of its domain
#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {

PassResult lower_init_blocks(const Ref<PrimFunc>& func, PassContext&) {
  Stmt body = rewrite(func->body, [](const Ref<Block>& block, Rewriter& r) -> Stmt {
    Ref<Block> inner = r.descend(block);
    if (!inner->init.defined()) return inner;
    Expr first = bool_imm(true);
    for (const Ref<IterVar>& axis : inner->iter_vars) {
      if (axis->iter_type == IterType::kCommReduce) first = logical_and(first, eq(axis->var, axis->dom->min));
    }
    Block copy = *inner;
    Stmt init = is_true(first) ? inner->init : Stmt(make<IfThenElse>({first, inner->init, {}}));
    copy.body = seq({init, inner->body});
    copy.init = {};
    return make<Block>(std::move(copy), block.span());
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
