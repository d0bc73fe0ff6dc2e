// Turn every request for a region into one request for each cache line of it.
//
//   Before                                       After
//   T.prefetch(A, [T.Range(0, 4),                for i, j in T.grid(4, 4):
//                  T.Range(0, 40)])                T.call_intrin("handle", "tir.prefetch",
//                                                                T.address_of(A[i, T.min(j * 16, 39)]), 0, 3, 1)
//
// Arguments may be unaligned to cache lines: NumPy aligns to 16 bytes, so 40 numbers touch three or four lines. Buffers
// that are allocated here are aligned to a line, and three requests are enough.
//
// Needs      nothing
// Ensures    no Prefetch. The last dimension is assumed to be contiguous: if it is not, fewer lines are prefetched,
//            which changes speed only. Registers are not prefetched.
// Placement  after plan_allocations and check_races, which go by the region that is named: from an address, anything
//            may be reached. Before the others: the address is a load, which these know
#include <algorithm>
#include <unordered_set>

#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kLineBits = 512;

/// `aligned`: lines begin where the rows of a region do.
Stmt requests(const BufferRegion& region, bool aligned) {
  int64_t per_line = std::max<int64_t>(1, kLineBits / (region.buffer->dtype.bits * region.buffer->dtype.lanes));
  std::vector<std::pair<Ref<Var>, Expr>> loops;
  std::vector<Expr> indices;
  for (size_t d : indices_of(region.region)) {
    const Range& range = *region.region[d];
    bool last = d + 1 == region.region.size();
    DataType index = range.extent.dtype();
    Ref<Var> line = var("line", index);
    Expr extent = range.extent, at = line;
    if (last) {
      extent = size_ceildiv(range.extent, constant(index, per_line));
      at = Expr(line) * per_line;
      if (!aligned && const_int(range.extent) != 1) {
        extent = extent + constant(index, 1);
        at = min(at, range.extent - constant(index, 1));
      }
    }
    indices.push_back(range.min + at);
    loops.emplace_back(line, extent);
  }
  Expr address = call(DataType::handle(), "tir.address_of", {load(region.buffer, std::move(indices))});
  Stmt all = make<Evaluate>({call(DataType::handle(), "tir.prefetch", {address, i32(0), i32(3), i32(1)})});
  for (const auto& [v, extent] : reversed(loops)) all = loop(v, extent, std::move(all));
  return all;
}

}  // namespace

PassResult lower_prefetches(const Ref<PrimFunc>& func, PassContext&) {
  std::unordered_set<NodeRef> arguments;
  for (const auto& [parameter, buffer] : func->buffer_map) arguments.insert(buffer->data);
  Stmt body = rewrite(func->body, [&](const Ref<Prefetch>& hint, Rewriter&) {
    return is_local(*hint->region->buffer) ? nop()
                                           : requests(*hint->region, !arguments.contains(hint->region->buffer->data));
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
