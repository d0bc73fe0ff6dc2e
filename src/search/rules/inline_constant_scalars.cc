#include "search/rules/inline_constant_scalars.h"

#include "schedule/primitives/compute_inline.h"
#include "search/rules/block_conditions.h"

namespace tilewright::search {

using namespace schedule;

Result<Schedules> InlineConstantScalars::apply(Schedule schedule, BlockRV rv) const {
  TW_TRY(place, schedule.state().find(rv));
  const Block& block = place.block();
  bool is_root = place.tree->realize_at(place.at) == nullptr;
  if (!is_root && block.reads.empty() && block.writes.size() == 1 && block.writes[0]->buffer->shape.empty() &&
      !is_output_block(place)) {
    TW_RETURN_IF_ERROR(schedule.apply(ComputeInline{rv}));
  }
  return Schedules{std::move(schedule)};
}

}  // namespace tilewright::search
