// Replace the axes of blocks by what they are bound to.
//
//   Before                                        After
//   with T.block("B"):                            with T.block("B"):
//     vi = T.axis.spatial(16, i * 4 + j)            T.reads(A[i * 4 + j])
//     T.reads(A[vi])                                T.writes(B[i * 4 + j])
//     T.writes(B[vi])                               B[i * 4 + j] = A[i * 4 + j]
//     B[vi] = A[vi]
//
// An axis that is bound to data becomes a variable that is set before the block: it is read once, whatever the block
// writes, and no block inside reads it. It is read where the block runs, so the block's condition goes around that.
//
// Needs      no block has an init
// Ensures    no block has axes; everything in a block is said in variables around it
// Placement  before anything that compares regions of different blocks
#include "analysis/accesses.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

bool reads_memory(const Expr& value) {
  bool reads = false;
  analysis::for_each_access(value, analysis::Nested::kEnter, [&](const analysis::Access&) { reads = true; });
  return reads;
}

}  // namespace

PassResult inline_block_axes(const Ref<PrimFunc>& func, PassContext&) {
  VarMap values;
  std::unordered_map<NodeRef, Ref<Buffer>> renamed;
  Stmt body = rewrite(
      func->body, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(values, v, v); },
      [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
        const Block& block = *realize->block;
        std::vector<std::pair<Ref<Var>, Expr>> kept;
        for (size_t i : indices_of(block.iter_vars)) {
          const Ref<Var>& axis = block.iter_vars[i]->var;
          Expr value = cast(axis.dtype(), r(realize->iter_values[i]));
          if (reads_memory(value)) {
            kept.emplace_back(var(axis->name_hint, axis.dtype()), value);
            value = kept.back().first;
          }
          values[axis] = value;
        }
        const Expr predicate = r(realize->predicate);
        const bool around = !kept.empty() && !is_true(predicate);
        Block bare = block;
        bare.iter_vars.clear();
        Ref<Block> inner = r.typed(make(std::move(bare), realize->block.span()));
        Stmt result = make<BlockRealize>({{}, around ? bool_imm(true) : predicate, inner}, realize.span());
        for (const auto& [axis, value] : reversed(kept)) result = make<LetStmt>({axis, value, result});
        return around ? make<IfThenElse>({predicate, result, {}}, realize.span()) : result;
      });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
