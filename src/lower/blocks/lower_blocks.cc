// Take blocks away: their predicates become conditions, their buffers allocations.
//
//   Before                               After
//   with T.block("B"):                   if i * 4 + j < 14:
//     T.where(i * 4 + j < 14)              t = T.allocate([8], "float32", "global")
//     t = T.alloc_buffer((8,))             t_1 = T.decl_buffer((8,), data=t)
//     ...                                  ...
//
// On devices, annotations of blocks decide on layouts (gpu/permuted_layout.h), and matrices become registers of lanes
// (gpu/mma_registers.h): as long as there are blocks, tensor intrinsics mean what their descriptions say, of elements.
//
// T.realize(B[...]) becomes an allocation of the whole of B, unless B has memory there.
//
// Needs      no block has axes or an init
// Ensures    no blocks and no T.realize; loops of one iteration are gone
// Placement  after the passes that read regions of blocks
#include <unordered_set>

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/mma_registers.h"
#include "lower/gpu/permuted_layout.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

Stmt allocate(const Ref<Buffer>& buffer, Stmt body, const Annotations& annotations) {
  std::vector<Expr> extents = buffer->shape;
  if (!buffer->strides.empty() && !extents.empty()) {
    // Strides of an allocation are padding of its rows: the outermost stride gives the size.
    extents = {buffer->strides[0] * buffer->shape[0]};
  }
  if (extents.empty()) extents.push_back(i32(1));
  Stmt inner = make<DeclBuffer>({buffer, std::move(body)});
  return make<Allocate>({buffer->data, buffer->dtype, extents, bool_imm(true), inner, annotations}, buffer.span());
}

}  // namespace

PassResult lower_blocks(const Ref<PrimFunc>& func, PassContext& context) {
  const bool is_device = context.target.is_in(TargetSet::kGpu);
  Stmt given = func->body;
  if (is_device) {
    TW_TRY(permuted, permute_layouts(given, context));
    given = std::move(permuted);
  }
  Stmt body = rewrite(given, [](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
    const Block& block = *realize->block;
    Stmt inner = r(block.body);
    for (const Ref<Buffer>& buffer : reversed(block.alloc_buffers)) inner = allocate(buffer, inner, {});
    if (is_true(realize->predicate)) return inner;
    return make<IfThenElse>({realize->predicate, inner, {}}, realize.span());
  });
  std::unordered_set<NodeRef> in_memory;
  for (const auto& [param, buffer] : func->buffer_map) in_memory.insert(buffer->data);
  visit(body, [&](const Ref<Allocate>& allocated) { in_memory.insert(allocated->buffer_var); });
  body = rewrite(
      body,
      [&](const Ref<AttrStmt>& attr, Rewriter& r) -> Stmt {
        // Around a realization, which declares the buffer that the attribute names: there is none any more.
        const BufferRealize* realized = attr->attr_key == "realize_scope" ? attr->body.as<BufferRealize>() : nullptr;
        return realized && attr->node == realized->buffer ? r(attr->body) : Stmt(r.descend(attr));
      },
      [&](const Ref<BufferRealize>& realize, Rewriter& r) -> Stmt {
        Stmt inner = r(realize->body);
        return in_memory.count(realize->buffer->data) ? inner : allocate(realize->buffer, inner, {});
      });
  if (is_device) {
    TW_TRY(in_registers, lower_mma_registers(body));
    body = std::move(in_registers);
  }
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
