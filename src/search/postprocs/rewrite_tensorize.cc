// Lets annotated blocks be computed by the tensor intrinsics that they name (meta_schedule.auto_tensorize).
//
// A block that does not match its intrinsic stays as it is, which is slower but correct, and a warning is issued once.
// With vectorize_init_loop, a block of an init that names none has its one loop vectorized.
#include <fmt/format.h>

#include "schedule/primitives/get_child_blocks.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/tensorize.h"
#include "schedule/primitives/unannotate.h"
#include "schedule/primitives/vectorize.h"
#include "search/loop_kinds.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::search {
namespace {

using namespace schedule;  // NOLINT: instructions

constexpr const char* kTensorizeKey = "meta_schedule.auto_tensorize";

/// The only loop of the only block inside becomes one of vector instructions.
Status vectorize_inside(Schedule& schedule, BlockRV block) {
  TW_TRY(children, schedule.apply(GetChildBlocks{block}));
  if (children.size() != 1) return Ok{};
  TW_TRY(loops, schedule.apply(GetLoops{children[0]}));
  if (loops.size() == 1) TW_RETURN_IF_ERROR(schedule.apply(Vectorize{loops[0]}));
  return Ok{};
}

}  // namespace

Status RewriteTensorize::initialize(const TuneContext&) {
  warnings_.clear();
  return Ok{};
}

Result<bool> RewriteTensorize::apply(Schedule& schedule) const {
  std::vector<FoundBlock> all = blocks_of(schedule.state());
  // Blocks inside others come first: tensorizing the outer one replaces them.
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    auto intrinsic = text_annotation(found->block->annotations, kTensorizeKey);
    if (!intrinsic || (intrinsic->empty() && !options_.vectorize_init_loop)) continue;
    if (intrinsic->empty() && found->block->name_hint.find("init") == std::string::npos) continue;
    TW_TRY(block, handle_of(schedule, found->func, *found->block));
    TW_RETURN_IF_ERROR(schedule.apply(Unannotate{block, kTensorizeKey}));
    Schedule before = schedule;
    Status done = intrinsic->empty() ? vectorize_inside(schedule, block) : Status(Ok{});
    if (!intrinsic->empty()) {
      auto tensorized = schedule.apply(Tensorize{block, *intrinsic});
      if (!tensorized.ok()) done = std::move(tensorized.error());
    }
    if (done.ok()) continue;
    schedule = std::move(before);
    const std::string what = intrinsic->empty() ? "vectorize its one loop" : fmt::format("use '{}'", *intrinsic);
    warnings_.once(found->block->name_hint + " " + what,
                   fmt::format("RewriteTensorize could not {} in block '{}', which stays as it is: {}", what,
                               found->block->name_hint, done.error().message));
  }
  return true;
}

}  // namespace tilewright::search
