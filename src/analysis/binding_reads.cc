#include "analysis/binding_reads.h"

#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {

bool binds_data(const BlockRealize& realize) {
  bool found = false;
  for_each_bound(realize, [&](const Expr& e) {
    found = found || !(e.is<Var>() || e.is<IntImm>() || effect_of(e) == Effect::kPure);
  });
  return found;
}

void add_single_reads(const Expr& e, std::vector<Ref<BufferRegion>>& regions) {
  if (e.is<Var>() || e.is<IntImm>() || effect_of(e) == Effect::kPure) return;
  visit(e, [&](const Ref<BufferLoad>& load) {
    BufferRegion region{load->buffer, {}};
    for (const Expr& index : load->indices) region.region.push_back(range(index, one(index.dtype())));
    regions.push_back(make(std::move(region)));
  });
}

std::vector<Ref<BufferRegion>> binding_reads(const BlockRealize& realize) {
  std::vector<Ref<BufferRegion>> regions;
  for_each_bound(realize, [&](const Expr& e) { add_single_reads(e, regions); });
  return regions;
}

bool binding_reads(const BlockRealize& realize, const Ref<Buffer>& buffer) {
  std::vector<Ref<BufferRegion>> regions = binding_reads(realize);
  return any_of(regions, [&](const auto& region) { return region->buffer == buffer; });
}

}  // namespace tilewright::analysis
