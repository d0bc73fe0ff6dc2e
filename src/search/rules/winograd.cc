#include "search/rules/winograd.h"

#include <array>

#include "ir/build.h"
#include "schedule/primitives/cache_write.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/compute_inline.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_consumers.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/get_producers.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/reverse_compute_at.h"
#include "schedule/primitives/sample_compute_location.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/set_scope.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/unroll.h"
#include "search/bind_block.h"
#include "search/rules/block_conditions.h"

namespace tilewright::search {
namespace {

using namespace schedule;  // NOLINT: instructions

constexpr int64_t kMaxThreadblocks = 256;
constexpr int64_t kMaxThreadsPerBlock = 1024;

Result<Factor> sample_extent(Schedule& schedule, int64_t max_extent) {
  return sample_thread_extent(schedule, {32, 64, 128, 256, 512, 1024}, max_extent);
}

using Rule = Status (*)(Schedule&, BlockRV);

/// Inlines the producer that holds the constant transform matrix (it reads nothing), and returns the other producer.
Result<BlockRV> inline_transform_matrix(Schedule& schedule, BlockRV block) {
  TW_TRY(producers, schedule.apply(GetProducers{block}));
  std::vector<BlockRV> data_producers;
  for (BlockRV producer : producers) {
    TW_TRY(place, schedule.state().find(producer));
    if (!place.block().reads.empty()) {
      data_producers.push_back(producer);
      continue;
    }
    TW_RETURN_IF_ERROR(schedule.apply(ComputeInline{producer}));
  }
  if (data_producers.size() == 1) return data_producers[0];
  return argument_error("winograd/producers",
                        "a block that transforms tiles has one producer that reads something, not " +
                            std::to_string(data_producers.size()),
                        "remove the annotation schedule_rule from blocks of another kind");
}

Result<std::vector<LoopRV>> six_loops(Schedule& schedule, BlockRV block) {
  TW_TRY(loops, schedule.apply(GetLoops{block}));
  if (loops.size() == 6) return loops;
  return argument_error("winograd/loops",
                        "a block that transforms tiles has 6 loops around it, not " + std::to_string(loops.size()),
                        "remove the annotation schedule_rule from blocks of another kind");
}

Status unroll_all(Schedule& schedule, std::initializer_list<LoopRV> loops) {
  for (LoopRV loop : loops) TW_RETURN_IF_ERROR(schedule.apply(Unroll{loop}));
  return Ok{};
}

/// Splits the two loops `tiled`, moves them outermost, and unrolls the other four. Returns [outer 0, outer 1, inner 0,
/// inner 1]. Loop numbers index the six loops around the block.
Result<std::vector<LoopRV>> tile_and_unroll(Schedule& schedule, BlockRV block, std::array<int, 2> tiled,
                                            std::array<int, 4> unrolled) {
  TW_TRY(loops, six_loops(schedule, block));
  std::vector<std::vector<LoopRV>> parts;
  for (int number : tiled) {
    TW_TRY(factors, schedule.apply(
                        SamplePerfectTile{.loop = loops[number], .n = 2, .max_innermost_factor = 64, .decision = {}}));
    TW_TRY(split, schedule.apply(Split{.loop = loops[number], .factors = {as_factors(factors)}}));
    parts.push_back(split);
  }
  std::vector<LoopRV> order = {parts[0][0], parts[1][0], parts[0][1], parts[1][1]};
  for (int number : unrolled) {
    TW_RETURN_IF_ERROR(schedule.apply(Unroll{loops[number]}));
    order.push_back(loops[number]);
  }
  TW_RETURN_IF_ERROR(schedule.apply(Reorder{{order}}));
  order.resize(4);
  return order;
}

Status fuse_and_bind(Schedule& schedule, const std::vector<LoopRV>& loops) {
  TW_TRY(fused, schedule.apply(Fuse{{loops}}));
  TW_RETURN_IF_ERROR(bind_spatial_loop(schedule, fused, kMaxThreadblocks, kMaxThreadsPerBlock, sample_extent));
  return Ok{};
}

Status compute_at_sampled_location(Schedule& schedule, BlockRV block) {
  TW_TRY(place, schedule.apply(SampleComputeLocation{.block = block, .decision = {}}));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = block, .loop = place, .preserve_unit_loops = true}));
  return Ok{};
}

/// Keeps the input tile in registers ("local") of the thread that transforms it, and inlines the padding.
Status keep_input_local(Schedule& schedule, BlockRV data_pack, BlockRV input_tile, BlockRV data_pad, LoopRV loop) {
  TW_TRY(copy, schedule.apply(CacheWrite{.block = data_pack, .storage_scope = "local", .consumer_blocks = {}}));
  TW_RETURN_IF_ERROR(schedule.apply(ReverseComputeAt{.block = copy, .loop = loop, .preserve_unit_loops = true}));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = input_tile, .loop = loop, .preserve_unit_loops = true}));
  TW_RETURN_IF_ERROR(schedule.apply(SetScope{.block = input_tile, .storage_scope = "local"}));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeInline{data_pad}));
  return Ok{};
}

Status cpu_data_pack(Schedule& schedule, BlockRV data_pack) {
  TW_TRY(input_tile, inline_transform_matrix(schedule, data_pack));
  TW_TRY(data_pad, inline_transform_matrix(schedule, input_tile));
  TW_RETURN_IF_ERROR(tile_and_unroll(schedule, data_pack, {2, 3}, {0, 1, 4, 5}));
  TW_RETURN_IF_ERROR(compute_at_sampled_location(schedule, input_tile));
  return compute_at_sampled_location(schedule, data_pad);
}

Status cpu_inverse(Schedule& schedule, BlockRV inverse, std::array<int, 2> tiled, std::array<int, 4> unrolled) {
  TW_RETURN_IF_ERROR(inline_transform_matrix(schedule, inverse));
  TW_RETURN_IF_ERROR(tile_and_unroll(schedule, inverse, tiled, unrolled));
  return Ok{};
}

Status cpu_nhwc_inverse(Schedule& schedule, BlockRV inverse) {
  return cpu_inverse(schedule, inverse, {2, 3}, {0, 1, 4, 5});
}

Status cpu_nchw_inverse(Schedule& schedule, BlockRV inverse) {
  return cpu_inverse(schedule, inverse, {0, 1}, {2, 3, 4, 5});
}

Status cuda_nhwc_data_pack(Schedule& schedule, BlockRV data_pack) {
  TW_TRY(input_tile, inline_transform_matrix(schedule, data_pack));
  TW_TRY(data_pad, inline_transform_matrix(schedule, input_tile));
  TW_TRY(tiles, tile_and_unroll(schedule, data_pack, {2, 3}, {0, 1, 4, 5}));
  TW_RETURN_IF_ERROR(keep_input_local(schedule, data_pack, input_tile, data_pad, tiles.back()));
  TW_TRY(loops, schedule.apply(GetLoops{data_pack}));
  return fuse_and_bind(schedule, {loops.begin(), loops.begin() + 4});
}

Status cuda_nhwc_inverse(Schedule& schedule, BlockRV inverse) {
  TW_RETURN_IF_ERROR(cpu_nhwc_inverse(schedule, inverse));
  TW_TRY(loops, schedule.apply(GetLoops{inverse}));
  return fuse_and_bind(schedule, {loops.begin(), loops.begin() + 4});
}

Status cuda_nchw_data_pack(Schedule& schedule, BlockRV data_pack) {
  TW_TRY(input_tile, inline_transform_matrix(schedule, data_pack));
  TW_TRY(data_pad, inline_transform_matrix(schedule, input_tile));
  TW_TRY(loops, six_loops(schedule, data_pack));
  TW_RETURN_IF_ERROR(schedule.apply(Reorder{{{loops[2], loops[3], loops[0], loops[1], loops[4], loops[5]}}}));
  TW_RETURN_IF_ERROR(unroll_all(schedule, {loops[0], loops[1], loops[4], loops[5]}));
  TW_TRY(fused, schedule.apply(Fuse{{{loops[2], loops[3]}}}));
  TW_TRY(bound, bind_spatial_loop(schedule, fused, kMaxThreadblocks, kMaxThreadsPerBlock, sample_extent));
  return keep_input_local(schedule, data_pack, input_tile, data_pad, bound.back());
}

Status cuda_nchw_inverse(Schedule& schedule, BlockRV inverse) {
  TW_RETURN_IF_ERROR(inline_transform_matrix(schedule, inverse));
  TW_TRY(place, schedule.state().find(inverse));
  const auto& shape = place.block().writes[0]->buffer->shape;
  const int64_t tile = shape.size() == 4 ? const_int(shape[2]).value_or(0) : 0;
  TW_TRY(consumers, schedule.apply(GetConsumers{inverse}));
  if (tile == 0 || consumers.empty()) {
    return argument_error("winograd/output", "the results of the transform are not tiles that another block reads",
                          "remove the annotation schedule_rule from blocks of another kind");
  }
  TW_TRY(image, schedule.apply(GetLoops{consumers[0]}));
  if (image.size() != 4) {
    return argument_error("winograd/output",
                          "what reads the tiles has 4 loops around it, not " + std::to_string(image.size()),
                          "remove the annotation schedule_rule from blocks of another kind");
  }
  TW_TRY(rows, schedule.apply(Split{.loop = image[2], .factors = {{None{}, tile}}}));
  TW_TRY(columns, schedule.apply(Split{.loop = image[3], .factors = {{None{}, tile}}}));
  TW_RETURN_IF_ERROR(schedule.apply(Reorder{{{rows[0], columns[0], rows[1], columns[1]}}}));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = inverse, .loop = columns[0], .preserve_unit_loops = true}));
  TW_RETURN_IF_ERROR(schedule.apply(SetScope{.block = inverse, .storage_scope = "local"}));
  TW_TRY(loops, schedule.apply(GetLoops{inverse}));
  return unroll_all(schedule, {loops[6], loops[7], loops[8], loops[9]});
}

CustomRule as_custom_rule(Rule rule) {
  return [rule](Schedule schedule, BlockRV block) -> Result<Schedules> {
    TW_RETURN_IF_ERROR(rule(schedule, block));
    return Schedules{std::move(schedule)};
  };
}

}  // namespace

std::vector<std::pair<std::string, CustomRule>> winograd_rules() {
  constexpr std::pair<const char*, Rule> kRules[] = {
      {"cpu.conv2d_nhwc_winograd_data_pack", cpu_data_pack},
      {"cpu.conv2d_nhwc_winograd_inverse", cpu_nhwc_inverse},
      {"cpu.conv2d_nchw_winograd_data_pack", cpu_data_pack},
      {"cpu.conv2d_nchw_winograd_inverse", cpu_nchw_inverse},
      {"cuda.conv2d_nhwc_winograd_data_pack", cuda_nhwc_data_pack},
      {"cuda.conv2d_nhwc_winograd_inverse", cuda_nhwc_inverse},
      {"cuda.conv2d_nchw_winograd_data_pack", cuda_nchw_data_pack},
      {"cuda.conv2d_nchw_winograd_inverse", cuda_nchw_inverse},
  };
  std::vector<std::pair<std::string, CustomRule>> rules;
  for (const auto& [name, rule] : kRules)
    rules.emplace_back(std::string("meta_schedule.") + name, as_custom_rule(rule));
  return rules;
}

}  // namespace tilewright::search
