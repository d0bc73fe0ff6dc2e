// Refuses schedules with a loop whose extent is no constant: kernels whose speed depends on values are not compared.
#include "ir/build.h"
#include "ir/traverse.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::search {

Result<bool> DisallowDynamicLoop::apply(Schedule& schedule) const {
  bool constant = true;
  visit(schedule.module(), [&](const Ref<For>& loop) { constant &= const_int(loop->extent).has_value(); });
  return constant;
}

}  // namespace tilewright::search
