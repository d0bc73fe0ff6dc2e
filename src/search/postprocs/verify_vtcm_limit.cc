// Refuses programs that need more of a processor's tightly coupled memory (scope "global.vtcm") than it has.
#include "ir/traverse.h"
#include "search/postprocs/compacted.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::search {

Status VerifyVTCMLimit::initialize(const TuneContext& context) {
  if (options_.vtcm_capacity == 0 && context.target) options_.vtcm_capacity = context.target->vtcm_bytes;
  return Ok{};
}

Result<bool> VerifyVTCMLimit::apply(Schedule& schedule) const {
  if (options_.vtcm_capacity <= 0) return true;
  TW_TRY(functions, compacted_functions(schedule.module()));
  for (const Ref<PrimFunc>& func : functions) {
    int64_t bytes = 0;
    bool known = true;
    visit(func, [&](const Ref<Block>& block) {
      for (const Def<Buffer>& buffer : block->alloc_buffers) {
        if (buffer->scope() != "global.vtcm") continue;
        auto size = bytes_of(*buffer);
        known &= size.has_value();
        bytes += size.value_or(0);
      }
    });
    if (!known || bytes > options_.vtcm_capacity) return false;
  }
  return true;
}

}  // namespace tilewright::search
