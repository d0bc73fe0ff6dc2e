// Refuses schedules with a loop whose extent is no constant: kernels whose speed depends on values are not compared.
#include "ir/build.h"
#include "ir/traverse.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::search {

Result<bool> DisallowDynamicLoop::apply(Schedule& schedule) const {
  return !any_node(schedule.module(), [](const Ref<For>& loop) { return !const_int(loop->extent); });
}

}  // namespace tilewright::search
