#include "analysis/shrink.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

std::set<int64_t> extents_of(const Ref<PrimFunc>& func) {
  std::set<int64_t> found;
  auto note = [&](const Expr& e) {
    if (auto value = const_int(e)) found.insert(*value);
  };
  visit(
      func, [&](const Ref<For>& loop) { note(loop->extent); }, [&](const Ref<Range>& range) { note(range->extent); },
      [&](const Ref<Allocate>& allocate) {
        for (const Expr& e : allocate->extents) note(e);
      },
      [&](const Ref<Buffer>& buffer, Visitor& v) {
        for (const Expr& e : buffer->shape) note(e);
        v.descend(buffer);
      });
  return found;
}

/// A small size for each large extent, ascending. An extent that is the product of two others becomes their product.
std::map<int64_t, int64_t> small_sizes(const std::set<int64_t>& extents, int64_t limit) {
  std::map<int64_t, int64_t> sizes;
  std::set<int64_t> taken(extents.begin(), extents.upper_bound(limit));
  for (int64_t extent : taken) sizes[extent] = extent;
  int64_t next = std::max<int64_t>(limit / 2, 2);
  for (auto it = extents.upper_bound(limit); it != extents.end(); ++it) {
    int64_t extent = *it, size = 0;
    for (const auto& [factor, small] : sizes) {
      if (factor > 1 && extent % factor == 0 && sizes.count(extent / factor)) size = small * sizes[extent / factor];
    }
    // Odd sizes, so that tails of tiles are reached; never one that another extent has.
    for (; size == 0 || (sizes.size() < 64 && taken.count(size)); size = next) next += next % 2 ? 2 : 1;
    taken.insert(size);
    sizes[extent] = size;
  }
  return sizes;
}

}  // namespace

Ref<PrimFunc> shrink(const Ref<PrimFunc>& func, int64_t limit) {
  std::map<int64_t, int64_t> sizes = small_sizes(extents_of(func), limit);
  return rewrite(func, [&](const Ref<IntImm>& imm, Rewriter&) -> Expr {
    auto it = sizes.find(imm->value);
    bool large = it != sizes.end() && imm->value > limit && imm->dtype.is_int() && imm->dtype.bits >= 32;
    return large ? Expr(int_imm(imm->dtype, it->second)) : Expr(imm);
  });
}

}  // namespace tilewright::analysis
