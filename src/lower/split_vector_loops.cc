// Cut vectorized loops to a few registers' width.
//
//   Before                               After
//   for j in T.vectorized(1000):         for j_0 in range(32):
//     B[j] = A[j]                          for j_1 in T.vectorized(32):
//                                            if j_0 * 32 + j_1 < 1000:
//                                              B[j_0 * 32 + j_1] = A[j_0 * 32 + j_1]
//
// Needs      no blocks
// Ensures    the extents of vectorized loops are constants of at most kMostRegisters registers of 32-bit elements
// Placement  before partition_loops, which separates the last, partial vector
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

/// Wider vectors are taken apart by the code generator into as many instructions, at a cost in build time.
constexpr int64_t kMostRegisters = 8;
/// For loops that are cut: enough vectors in flight to hide latencies.
constexpr int64_t kCutRegisters = 4;

}  // namespace

PassResult split_vector_loops(const Ref<PrimFunc>& func, PassContext& context) {
  int64_t native = vector_lanes(context.target, 32);
  Stmt body = rewrite(func->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    Ref<For> inner = r.descend(loop);
    auto extent = const_int(loop->extent);
    if (loop->kind != ForKind::kVectorized || (extent && *extent <= kMostRegisters * native)) return inner;
    int64_t width = kCutRegisters * native;
    // A divisor that is nearly as wide needs no remainder.
    for (int64_t w = kMostRegisters * native; extent && w >= 2 * native; w -= native) {
      if (*extent % w == 0) {
        width = w;
        break;
      }
    }
    DataType type = loop->loop_var.dtype();
    Ref<Var> outer = var(loop->loop_var->name_hint + "_0", type), lane = var(loop->loop_var->name_hint + "_1", type);
    Expr offset = outer * width + lane;
    Stmt inside = substitute(inner->body, {{loop->loop_var, loop->min + offset}});
    if (!extent || *extent % width) inside = make<IfThenElse>({lt(offset, loop->extent), inside, {}});
    Stmt vector = tilewright::loop(lane, int_imm(type, width), inside, ForKind::kVectorized);
    For copy = *inner;
    copy.loop_var = outer;
    copy.min = zero(type);
    copy.extent = floordiv(loop->extent + (width - 1), constant(type, width));
    copy.kind = ForKind::kSerial;
    copy.body = vector;
    return make<For>(std::move(copy), loop.span());
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
