// Turn every request for a region into one request for each cache line of it.
//
//   Before                                       After
//   T.prefetch(A, [T.Range(0, 4),                for i, j in T.grid(4, 3):
//                  T.Range(0, 40)])                T.call_intrin("handle", "tir.prefetch", T.address_of(A[i, j * 16]),
//                                                                0, 3, 1)
//
// Needs      nothing
// Ensures    no Prefetch. The last dimension is taken to be contiguous: where it is not, fewer lines are asked for,
//            which changes speed only. Of registers nothing is asked for.
// Placement  after plan_allocations and check_races, which go by the region that is named: from an address, anything
//            may be reached. Before the others: the address is a load, which these know
#include <algorithm>

#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kLineBits = 512;

Stmt requests(const BufferRegion& region) {
  int64_t per_line = std::max<int64_t>(1, kLineBits / (region.buffer->dtype.bits * region.buffer->dtype.lanes));
  std::vector<std::pair<Ref<Var>, Expr>> loops;
  std::vector<Expr> indices;
  for (size_t d = 0; d < region.region.size(); ++d) {
    const Range& range = *region.region[d];
    bool last = d + 1 == region.region.size();
    DataType index = range.extent.dtype();
    Expr extent = last ? ceildiv(range.extent, constant(index, per_line)) : range.extent;
    Ref<Var> line = var("line", index);
    indices.push_back(range.min + (last ? Expr(line) * per_line : Expr(line)));
    loops.emplace_back(line, extent);
  }
  Expr address = call(DataType::handle(), "tir.address_of", {load(region.buffer, std::move(indices))});
  Stmt all = make<Evaluate>({call(DataType::handle(), "tir.prefetch", {address, i32(0), i32(3), i32(1)})});
  for (auto it = loops.rbegin(); it != loops.rend(); ++it) all = loop(it->first, it->second, std::move(all));
  return all;
}

}  // namespace

PassResult lower_prefetches(const Ref<PrimFunc>& func, PassContext&) {
  Stmt body = rewrite(func->body, [&](const Ref<Prefetch>& hint, Rewriter&) {
    return is_local(*hint->region->buffer) ? nop() : requests(*hint->region);
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
