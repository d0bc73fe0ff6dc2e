#include "search/postprocs/compacted.h"

#include "ir/build.h"
#include "ir/strides.h"
#include "lower/passes.h"
#include "lower/pipeline.h"

namespace tilewright::search {

Result<std::vector<Ref<PrimFunc>>> compacted_functions(const Ref<Module>& module) {
  static constexpr lower::FunctionPass* kPasses[] = {lower::lower_prefetches, lower::plan_allocations,
                                                     lower::lower_init_blocks, lower::inline_block_axes,
                                                     lower::compact_buffers};
  Target target = Target::interpreter();  // all these are the same for all targets
  lower::PassContext context{target, {}, false, false, false, {}, {}, {}};
  std::vector<Ref<PrimFunc>> result;
  Ref<Module> with_strides = with_all_strides(module);
  for (const auto& [name, func] : with_strides->functions) {
    if (!func.is<PrimFunc>()) continue;
    context.function = name;
    Ref<PrimFunc> current = func.borrow<PrimFunc>();
    for (lower::FunctionPass* pass : kPasses) {
      TW_TRY(after, pass(current, context));
      current = after;
    }
    result.push_back(std::move(current));
  }
  return result;
}

std::optional<int64_t> bytes_of(const Buffer& buffer) {
  return known_product(buffer.dtype.bytes() * buffer.dtype.lanes, buffer.shape);
}

}  // namespace tilewright::search
