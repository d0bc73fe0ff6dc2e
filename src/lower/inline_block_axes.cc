// Replace the axes of blocks by what they are bound to.
//
//   Before                                        After
//   with T.block("B"):                            with T.block("B"):
//     vi = T.axis.spatial(16, i * 4 + j)            T.reads(A[i * 4 + j])
//     T.reads(A[vi])                                T.writes(B[i * 4 + j])
//     T.writes(B[vi])                               B[i * 4 + j] = A[i * 4 + j]
//     B[vi] = A[vi]
//
// Needs      no block has an init
// Ensures    no block has axes; everything in a block is said in variables of the loops around it
// Placement  before anything that compares regions of different blocks
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {

PassResult inline_block_axes(const Ref<PrimFunc>& func, PassContext&) {
  VarMap values;
  std::unordered_map<NodeRef, Ref<Buffer>> renamed;
  Stmt body = rewrite(
      func->body,
      [&](const Ref<Var>& v, Rewriter&) -> Expr {
        auto it = values.find(v);
        return it == values.end() ? Expr(v) : it->second;
      },
      [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
        const Block& block = *realize->block;
        for (size_t i = 0; i < block.iter_vars.size(); ++i) {
          values[block.iter_vars[i]->var] = cast(block.iter_vars[i]->var.dtype(), r(realize->iter_values[i]));
        }
        Expr predicate = r(realize->predicate);
        Block bare = block;
        bare.iter_vars.clear();
        Ref<Block> inner = r.typed(make<Block>(std::move(bare), realize->block.span()));
        return make<BlockRealize>({{}, predicate, inner}, realize.span());
      });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
