#include "ir/regions.h"

#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright {

std::vector<Ref<Range>> whole_region(const std::vector<Expr>& shape) {
  std::vector<Ref<Range>> region;
  for (const Expr& extent : shape) region.push_back(range_of(extent));
  return region;
}

Ref<BufferRegion> whole_region(const Ref<Buffer>& buffer) {
  return make<BufferRegion>({buffer, whole_region(buffer->shape)});
}

bool uses_var(const std::vector<Ref<Range>>& region, const Ref<Var>& v) {
  return any_of(region, [&](const Ref<Range>& r) { return uses_var(r->min, v) || uses_var(r->extent, v); });
}

}  // namespace tilewright
