// Makes the threads of a block copy cooperatively into buffers that rules annotated with
// meta_schedule.cooperative_fetch = N: the innermost loop of the copy is split into [remainder, threadIdx.y,
// threadIdx.x, lanes], with the kernel's number of threads.
//
// The number of threads follows from the trace: the last loops bound before the annotation, or a warp if warp_execution
// is set. N lanes are vectorized if N divides the extent and no value is wider than 32 bits.
#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/unannotate.h"
#include "schedule/primitives/vectorize.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::search {
namespace {

using namespace schedule;  // NOLINT: instructions

constexpr const char* kFetchKey = "meta_schedule.cooperative_fetch";

struct Fetch {
  BlockRV block;
  int64_t lanes = 1;
  int64_t threads_x = 0, threads_y = 0;  ///< 0: none
};

/// Bytes of the widest value that the block handles.
int64_t widest_value(const Block& block) {
  int64_t bytes = 1;
  visit(
      block.body, [&](const Ref<BufferStore>& s) { bytes = std::max<int64_t>(bytes, s->value.dtype().bytes()); },
      on<BufferLoad, Cast>([&](const auto& node) { bytes = std::max<int64_t>(bytes, Expr(node).dtype().bytes()); }),
      [&](const Ref<Call>& call) {
        const Op* op = call->op.as<Op>();  // these multiply in 64 bits
        if (op && op->name.starts_with("tir.q_multiply_shift")) bytes = std::max<int64_t>(bytes, 8);
      });
  return bytes;
}

std::optional<int64_t> extent_of(const State& state, LoopRV rv) {
  auto loop = state.find(rv);
  return loop.ok() ? const_int(loop->loop().extent) : std::nullopt;
}

std::vector<Fetch> find_fetches(const Schedule& schedule, int64_t warp_size) {
  std::vector<Fetch> result;
  int64_t x = 0, y = 0;
  for (const Step* step : schedule.trace().steps()) {
    if (const auto* bind = step->instruction.as<Bind>()) {
      if (bind->thread_axis == "threadIdx.x") x = extent_of(schedule.state(), bind->loop).value_or(x);
      if (bind->thread_axis == "threadIdx.y") y = extent_of(schedule.state(), bind->loop).value_or(y);
    } else if (const auto* annotate = step->instruction.as<Annotate>()) {
      if (annotate->ann_key == "warp_execution" && warp_size > 0) x = warp_size;
      const auto* block = std::get_if<BlockRV>(&annotate->block_or_loop);
      if (annotate->ann_key != kFetchKey || !block) continue;
      int64_t lanes = 1;
      if (const auto* sampled = annotate->ann_val.as<ExprRV>()) lanes = schedule.state().value(*sampled);
      if (const auto* number = annotate->ann_val.as<int64_t>()) lanes = *number;
      result.push_back({*block, lanes, x, y});
    }
  }
  return result;
}

Status rewrite(Schedule& schedule, const Fetch& fetch) {
  TW_RETURN_IF_ERROR(schedule.apply(Unannotate{fetch.block, kFetchKey}));
  TW_TRY(loops, schedule.apply(GetLoops{fetch.block}));
  if (loops.empty()) return Ok{};
  auto extent = extent_of(schedule.state(), loops.back());
  if (!extent) return Ok{};
  TW_TRY(block, schedule.state().find(fetch.block));
  bool vectorizes = fetch.lanes > 1 && *extent % fetch.lanes == 0 && widest_value(block.block()) <= 4;
  std::vector<Factor> factors = {None{}};
  std::vector<const char*> axes = {nullptr};
  if (fetch.threads_y > 0) {
    factors.emplace_back(fetch.threads_y);
    axes.push_back("threadIdx.y");
  }
  if (fetch.threads_x > 0) {
    factors.emplace_back(fetch.threads_x);
    axes.push_back("threadIdx.x");
  }
  if (vectorizes) {
    factors.emplace_back(fetch.lanes);
    axes.push_back(nullptr);
  }
  if (factors.size() == 1) return Ok{};  // no threads are known, nothing to vectorize
  TW_TRY(split, schedule.apply(Split{loops.back(), {std::move(factors)}}));
  if (vectorizes) TW_RETURN_IF_ERROR(schedule.apply(Vectorize{split.back()}));
  for (size_t i = split.size(); i-- > 0;) {
    if (axes[i]) TW_RETURN_IF_ERROR(schedule.apply(Bind{split[i], axes[i]}));
  }
  return Ok{};
}

}  // namespace

Status RewriteCooperativeFetch::initialize(const TuneContext& context) {
  warp_size_ = context.target && context.target->is_in(TargetSet::kGpu) ? context.target->thread_warp_size : 0;
  return Ok{};
}

Result<bool> RewriteCooperativeFetch::apply(Schedule& schedule) const {
  for (const Fetch& fetch : find_fetches(schedule, warp_size_)) TW_RETURN_IF_ERROR(rewrite(schedule, fetch));
  return true;
}

}  // namespace tilewright::search
