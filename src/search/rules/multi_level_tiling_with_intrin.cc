#include "search/rules/multi_level_tiling_with_intrin.h"

#include <fmt/format.h>

#include "ir/tensor_intrin.h"
#include "search/auto_tensorize.h"

namespace tilewright::search {

using namespace schedule;

Status MultiLevelTilingWithIntrin::check_intrin(const std::string& intrin_name) {
  if (find_tensor_intrin(intrin_name)) return Ok{};
  return argument_error("multi_level_tiling/intrin", "there is no tensor intrinsic '" + intrin_name + "'",
                        "register it before, or import the module that does");
}

Status MultiLevelTilingWithIntrin::check(const Options& options) {
  TW_RETURN_IF_ERROR(check_intrin(options.intrin_name));
  return MultiLevelTiling::check(options);
}

Status MultiLevelTilingWithIntrin::initialize(const TuneContext& context) {
  is_missing_ = false;
  warnings_.clear();
  if (context.target && context.target->kind == TargetKind::kCpu) {
    TW_RETURN_IF_ERROR(check_intrin(options_.intrin_name));
    for (const std::string& feature : find_tensor_intrin(options_.intrin_name)->features) {
      if (context.target->has(feature)) continue;
      is_missing_ = true;
      warnings_.once(feature, fmt::format("{} skips '{}', which needs {}: {} does not have it", name(),
                                          options_.intrin_name, feature, context.target->cpu));
    }
  }
  return MultiLevelTiling::initialize(context);
}

Result<Schedules> MultiLevelTilingWithIntrin::apply(Schedule schedule, BlockRV block) const {
  if (is_missing_) return Schedules{std::move(schedule)};
  TW_RETURN_IF_ERROR(check_intrin(options_.intrin_name));
  TW_TRY(wanted, is_wanted(schedule, block));
  TW_TRY(place, schedule.state().find(block));
  if (!wanted || !computes_as(place, *find_tensor_intrin(options_.intrin_name)->desc)) {
    return Schedules{std::move(schedule)};
  }
  TW_TRY(tiled, tile(schedule.fork(), block));
  if (tiled.empty()) return Schedules{std::move(schedule)};
  return tiled;
}

Result<TilingStates> MultiLevelTilingWithIntrin::apply_steps(TilingStates states) const {
  auto fit = [this](TilingState state) -> Result<TilingStates> {
    TW_TRY(outer, tile_for_intrin(state.schedule, state.block, options_.intrin_name, /*allow_padding=*/false));
    if (!outer) return TilingStates{};
    state.block = *outer;
    return TilingStates{std::move(state)};
  };
  TW_TRY(fitting, step(std::move(states), fit));
  return MultiLevelTiling::apply_steps(std::move(fitting));
}

}  // namespace tilewright::search
