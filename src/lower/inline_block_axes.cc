// Replace the axes of blocks by what they are bound to.
//
//   Before                                        After
//   with T.block("B"):                            with T.block("B"):
//     vi = T.axis.spatial(16, i * 4 + j)            T.reads(A[i * 4 + j])
//     T.reads(A[vi])                                T.writes(B[i * 4 + j])
//     T.writes(B[vi])                               B[i * 4 + j] = A[i * 4 + j]
//     B[vi] = A[vi]
//
// What a binding reads, the block reads from then on. Where the block writes it as well, the axis becomes a variable
// that is set before the block: it keeps the value that it had at the beginning.
//
// Needs      no block has an init
// Ensures    no block has axes; everything in a block is said in variables around it
// Placement  before anything that compares regions of different blocks
#include <algorithm>

#include "analysis/accesses.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

/// What evaluating the expression reads.
std::vector<Ref<BufferRegion>> regions_read(const Expr& value) {
  std::vector<Ref<BufferRegion>> regions;
  analysis::for_each_access(value, analysis::Nested::kEnter, [&](const analysis::Access& access) {
    if (Ref<BufferRegion> region = access.region(); region.defined()) regions.push_back(region);
  });
  return regions;
}

bool writes_any(const Block& block, const std::vector<Ref<BufferRegion>>& regions) {
  return std::any_of(regions.begin(), regions.end(), [&](const Ref<BufferRegion>& region) {
    return std::any_of(block.writes.begin(), block.writes.end(),
                       [&](const Ref<BufferRegion>& written) { return written->buffer->data == region->buffer->data; });
  });
}

}  // namespace

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
        std::vector<Ref<BufferRegion>> read;
        std::vector<std::pair<Ref<Var>, Expr>> kept;
        for (size_t i = 0; i < block.iter_vars.size(); ++i) {
          const Ref<Var>& axis = block.iter_vars[i]->var;
          Expr value = cast(axis.dtype(), r(realize->iter_values[i]));
          std::vector<Ref<BufferRegion>> regions = regions_read(value);
          if (writes_any(block, regions)) {
            kept.emplace_back(var(axis->name_hint, axis.dtype()), value);
            value = kept.back().first;
          } else {
            read.insert(read.end(), regions.begin(), regions.end());
          }
          values[axis] = value;
        }
        Expr predicate = r(realize->predicate);
        Block bare = block;
        bare.iter_vars.clear();
        Block inner = *r.typed(make<Block>(std::move(bare), realize->block.span()));
        inner.reads.insert(inner.reads.end(), read.begin(), read.end());
        Stmt result =
            make<BlockRealize>({{}, predicate, make<Block>(std::move(inner), realize->block.span())}, realize.span());
        for (size_t i = kept.size(); i-- > 0;) result = make<LetStmt>({kept[i].first, kept[i].second, result});
        return result;
      });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
