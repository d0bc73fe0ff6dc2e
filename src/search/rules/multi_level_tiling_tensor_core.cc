#include "search/rules/multi_level_tiling_tensor_core.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/tensor_intrin.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/blockize.h"
#include "schedule/primitives/cache_read.h"
#include "schedule/primitives/cache_write.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/compute_inline.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_consumers.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/get_producers.h"
#include "schedule/primitives/read_at.h"
#include "schedule/primitives/reindex.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/reverse_compute_inline.h"
#include "schedule/primitives/sample_partitioned_tile.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/storage_align.h"
#include "schedule/primitives/transform_block_layout.h"
#include "schedule/primitives/transform_layout.h"
#include "schedule/primitives/write_at.h"
#include "search/auto_tensorize.h"
#include "search/loop_kinds.h"
#include "search/rules/block_conditions.h"
#include "search/rules/multi_level_tiling_with_intrin.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

/// Where fragments of the operands and of the result are.
struct FragmentScopes {
  const char *operands[2], *result;
};

namespace {

constexpr const char* kWarpAxis = "threadIdx.y";
/// Row strides in shared memory are kAlignFactor * n elements plus an offset, so neighboring rows start in different
/// banks.
constexpr int64_t kAlignFactor = 32;
/// Fragments per ldmatrix: along rows of A, along columns of B (m16n8k8).
constexpr int64_t kFragmentsPerLoad[] = {2, 4};
/// Bytes of one cp.async copy.
constexpr int64_t kAsyncBytes = 16;
/// Marks copies to and from shared memory that permute the elements there.
constexpr const char* kPermutedLayout = "permuted_layout";

constexpr FragmentScopes kWmma = {{"wmma.matrix_a", "wmma.matrix_b"}, "wmma.accumulator"};
constexpr FragmentScopes kM16n8k8 = {{"m16n8k8.matrixA", "m16n8k8.matrixB"}, "m16n8k8.matrixC"};

/// Whether the compute intrinsic is mma.m16n8k8, whose fragments are registers without a store instruction.
bool is_m16n8k8(const std::string& compute) {
  const std::shared_ptr<const TensorIntrin> intrin = find_tensor_intrin(compute);
  if (!intrin) return false;
  const auto& buffers = intrin->desc->buffer_map;
  return any_of(buffers, [](const auto& entry) { return entry.second->scope() == kM16n8k8.result; });
}

Value int_list(const std::vector<int64_t>& items) {
  Value::List list;
  for (int64_t item : items) list.push_back(Value{item});
  return Value{std::move(list)};
}

/// Whether both handles refer to one block.
bool is_same_block(const Schedule& schedule, BlockRV a, BlockRV b) {
  auto one = schedule.state().find(a), other = schedule.state().find(b);
  return one.ok() && other.ok() && one->at == other->at && one->func == other->func;
}

/// Derives the layout maps of a block's buffers from the map of its axes. Each buffer is indexed by some of the axes.
class BufferLayouts {
 public:
  explicit BufferLayouts(const LayoutMapping& mapping) : mapping_(mapping) {}

  /// `buffer`: buffer that the block accessed before reindexing. `region`: its access to the reindexed copy.
  std::optional<Ref<IndexMap>> of(const Ref<Buffer>& buffer, const BufferRegion& region,
                                  const std::vector<Ref<IterVar>>& axes) const {
    auto* operand = find_value(mapping_.buffers, buffer);
    if (!operand) return std::nullopt;
    const auto& final = mapping_.map->final_indices;
    IndexMap map;
    for (const Ref<Range>& range : region.region) {
      auto axis = find_if(axes, [&](const Ref<IterVar>& each) { return each->var == range->min; });
      if (axis == axes.end()) return std::nullopt;
      map.initial_indices.push_back(mapping_.map->initial_indices[axis - axes.begin()]);
      auto batches_end = final.begin() + static_cast<std::ptrdiff_t>(mapping_.num_batches);
      const Def<Var>& index = map.initial_indices.back();
      if (std::find(final.begin(), batches_end, index) != batches_end) map.final_indices.push_back(index);
    }
    for (const Expr& index : mapping_.indices.at(*operand)) {
      auto axis = find_if(mapping_.desc_axes, [&](const Ref<IterVar>& each) { return each->var == index; });
      if (axis == mapping_.desc_axes.end()) return std::nullopt;
      map.final_indices.push_back(final[mapping_.num_batches + static_cast<size_t>(axis - mapping_.desc_axes.begin())]);
    }
    return make(std::move(map));
  }

 private:
  const LayoutMapping& mapping_;
};

}  // namespace

/// The block of a matrix product, and the blocks that copy its buffers to copies indexed by its axes.
struct MultiLevelTilingTensorCore::Product {
  TensorCoreIntrins intrins;
  FragmentScopes scopes;
  int64_t fragment_rows = 0, fragment_columns = 0;  ///< size of the result's fragment
  BlockRV block{}, reindex_a{}, reindex_b{}, reindex_result{};

  /// Reindexes the block's buffers, transforms their layouts, tiles the block and annotates the tile. Modifies
  /// `schedule`. Returns nothing if the block does not match.
  static Result<std::optional<Product>> reindex_and_tile(Schedule& schedule, BlockRV block,
                                                         const TensorCoreIntrins& intrins) {
    TW_TRY(place, schedule.state().find(block));
    auto mapping = layout_mapping(place, *find_tensor_intrin(intrins.compute)->desc);
    const Block& before = place.block();
    if (!mapping || before.reads.size() != 2 || before.writes.size() != 1 || mapping->desc_axes.size() != 3) {
      return std::optional<Product>();
    }
    auto rows = const_int(mapping->desc_axes[0]->dom->extent), columns = const_int(mapping->desc_axes[1]->dom->extent);
    if (!rows || !columns) return std::optional<Product>();
    const Ref<Buffer> operands[] = {before.reads[0]->buffer, before.reads[1]->buffer, before.writes[0]->buffer};
    Product product{.intrins = intrins,
                    .scopes = is_m16n8k8(intrins.compute) ? kM16n8k8 : kWmma,
                    .fragment_rows = *rows,
                    .fragment_columns = *columns,
                    .block = block};
    const TouchedBuffer touched[] = {{"read", 0}, {"read", 1}, {"write", 0}};
    BlockRV* reindexed[] = {&product.reindex_a, &product.reindex_b, &product.reindex_result};
    for (size_t i : {2, 0, 1}) {
      TW_TRY(copy, schedule.apply(ReIndex{.block = block, .buffer = touched[i]}));
      *reindexed[i] = copy;
    }
    std::vector<Ref<IndexMap>> maps;
    for (size_t i = 0; i < 3; ++i) {
      TW_TRY(now, schedule.state().find(block));
      const Ref<BufferRegion>& region = i < 2 ? now.block().reads[i] : now.block().writes[0];
      auto map = BufferLayouts(*mapping).of(operands[i], *region, now.block().iter_vars);
      if (!map) return std::optional<Product>();
      maps.push_back(*map);
      TW_RETURN_IF_ERROR(schedule.apply(TransformLayout{.block = block,
                                                        .buffer = touched[i],
                                                        .index_map = {maps.back()},
                                                        .pad_value = {},
                                                        .assume_injective_transform = true,
                                                        .values = {}}));
    }
    for (size_t i : {2, 0, 1}) {
      TW_RETURN_IF_ERROR(schedule.apply(TransformBlockLayout{.block = *reindexed[i], .index_map = {maps[i]}}));
    }
    TW_RETURN_IF_ERROR(schedule.apply(TransformBlockLayout{.block = block, .index_map = {mapping->map}}));
    TW_TRY(outer, tile_for_intrin(schedule, block, intrins.compute, /*allow_padding=*/true));
    if (!outer) return std::optional<Product>();
    product.block = *outer;
    std::pair<const char*, Value> notes[] = {{"meta_schedule.auto_tensorize_init", {intrins.init}},
                                             {"warp_execution", {int64_t{1}}}};
    for (auto& [key, value] : notes) {
      TW_RETURN_IF_ERROR(
          schedule.apply(Annotate{.block_or_loop = *outer, .ann_key = key, .ann_val = std::move(value)}));
    }
    return std::optional(product);
  }
};

Status MultiLevelTilingTensorCore::check(const Options& options) {
  TW_RETURN_IF_ERROR(MultiLevelTiling::check(options));
  for (const TensorCoreIntrins& group : options.intrin_groups) {
    for (const std::string& name : {group.init, group.load_a, group.load_b, group.compute, group.store}) {
      TW_RETURN_IF_ERROR(MultiLevelTilingWithIntrin::check_intrin(name));
    }
  }
  const auto& binds = options.tile_binds;
  auto warp = std::ranges::find(binds, kWarpAxis);
  const auto num_spatial = std::ranges::count(options.structure, 'S');
  const auto num_reduction = std::ranges::count(options.structure, 'R');
  auto refuse = [](const std::string& what, const std::string& hint) {
    return argument_error("multi_level_tiling/tensor-core", what, hint);
  };
  if (is_contained(binds, "threadIdx.x")) {
    return refuse("tiles are bound to threadIdx.x, which this rule reserves for the lanes of a warp",
                  "bind a tile to threadIdx.y, as in [\"blockIdx.y\", \"blockIdx.x\", \"threadIdx.y\"]");
  }
  if (warp == binds.end() || warp - binds.begin() + 1 >= num_spatial || num_reduction < 2) {
    return refuse(
        "the structure '" + options.structure +
            "' needs a spatial tile bound to threadIdx.y, a spatial tile inside of it, and two reduction tiles",
        "bind a spatial tile that others follow to threadIdx.y, and write two R, as in \"SSSRRSRS\"");
  }
  const bool stores = any_of(options.intrin_groups, [](const auto& group) { return !is_m16n8k8(group.compute); });
  if (options.reuse_read.requirement != ReuseType::Requirement::kMust ||
      (stores && options.reuse_write.requirement != ReuseType::Requirement::kMust)) {
    return refuse("the rule needs copies of the operands in shared memory, and for wmma also of the result",
                  "set req=\"must\", scope=\"shared\" for reuse_read, and for wmma for reuse_write; put m16n8k8 "
                  "intrinsics into a rule of their own, which needs no reuse_write");
  }
  return Ok{};
}

Result<Schedules> MultiLevelTilingTensorCore::apply(Schedule schedule, BlockRV block) const {
  Schedules result;
  for (const TensorCoreIntrins& group : options_.intrin_groups) {
    TW_RETURN_IF_ERROR(MultiLevelTilingWithIntrin::check_intrin(group.compute));
    TW_TRY(place, schedule.state().find(block));
    if (!layout_mapping(place, *find_tensor_intrin(group.compute)->desc)) continue;
    // Skip a variant that a primitive refuses, such as a copy that cannot be proved to be complete.
    auto states = apply_group(schedule.fork(), block, group);
    if (!states.ok()) continue;
    for (TilingState& state : *states) result.push_back(std::move(state.schedule));
  }
  if (result.empty()) result.push_back(std::move(schedule));
  return result;
}

Result<TilingStates> MultiLevelTilingTensorCore::apply_group(Schedule schedule, BlockRV block,
                                                             const TensorCoreIntrins& group) const {
  TW_RETURN_IF_ERROR(schedule.apply(
      Annotate{.block_or_loop = block, .ann_key = "meta_schedule.tiling_structure", .ann_val = {options_.structure}}));
  TW_TRY(product_or_none, Product::reindex_and_tile(schedule, block, group));
  if (!product_or_none) return TilingStates{};
  const Product product = *product_or_none;
  const bool in_registers = is_m16n8k8(group.compute);
  if (in_registers) {
    TW_TRY(place, schedule.state().find(product.block));
    if (place.block().iter_vars.size() != 3) return TilingStates{};  // batches
  }
  using Step = Result<bool> (MultiLevelTilingTensorCore::*)(TilingState&, const Product&) const;
  auto in_place = [&](Step step) {
    return [this, step, &product](TilingState state) -> Result<TilingStates> {
      TW_TRY(fits, (this->*step)(state, product));
      return fits ? TilingStates{std::move(state)} : TilingStates{};
    };
  };
  TW_TRY(tiled, step({TilingState{std::move(schedule), product.block}},
                     [this](TilingState state) { return tile_loop_nest(std::move(state), 2); }));
  TilingStates packed = std::move(tiled);
  if (!in_registers) {
    TW_TRY(by_warps, step(std::move(packed), in_place(&MultiLevelTilingTensorCore::pack_result)));
    packed = std::move(by_warps);
  }
  TW_TRY(written, step(std::move(packed), [this](TilingState state) { return add_write_reuse(std::move(state)); }));
  TW_TRY(stored, step(std::move(written), in_place(in_registers ? &MultiLevelTilingTensorCore::store_registers
                                                                : &MultiLevelTilingTensorCore::store_fragments)));
  TW_TRY(read, step(std::move(stored), [&](TilingState state) {
           return in_registers ? copy_operands(std::move(state)) : add_read_reuse(std::move(state));
         }));
  TW_TRY(loaded, step(std::move(read), in_place(&MultiLevelTilingTensorCore::load_fragments)));
  if (options_.use_software_pipeline) {
    for (TilingState& state : loaded) {
      TW_TRY(has_next, has_steps(state));
      if (has_next) TW_RETURN_IF_ERROR(in_registers ? add_copying_pipeline(state) : add_software_pipeline(state));
    }
  }
  return std::move(loaded);
}

/// Index of the tile that is bound to threadIdx.y, among the bound tiles.
size_t MultiLevelTilingTensorCore::warp_level() const {
  auto warp = std::ranges::find(options_.tile_binds, kWarpAxis);
  return static_cast<size_t>(warp - options_.tile_binds.begin());
}

/// Samples tiles of m16n8k8 so that a warp's rows and columns between two loads are whole ldmatrix loads.
Result<MultiLevelTiling::SplitLoop> MultiLevelTilingTensorCore::split_loop(Schedule& schedule, BlockRV block,
                                                                           LoopRV loop, size_t n) const {
  TW_TRY(place, schedule.state().find(block));
  TW_TRY(at, schedule.state().find(loop));
  const auto& values = place.tree->realize_at(place.at)->iter_values;
  const auto axis = static_cast<size_t>(std::ranges::find(values, Expr(at.loop().loop_var)) - values.begin());
  auto intrin = text_annotation(place.block().annotations, "meta_schedule.auto_tensorize");
  if (axis >= std::size(kFragmentsPerLoad) || !intrin || !is_m16n8k8(*intrin)) {
    return MultiLevelTiling::split_loop(schedule, block, loop, n);
  }
  const auto num_outside =
      std::ranges::count_if(spatial_levels_, [&](size_t level) { return level < reduction_levels_[1]; });
  TW_TRY(sampled, schedule.apply(SamplePartitionedTile{.loop = loop,
                                                       .n = static_cast<int64_t>(n),
                                                       .partition_pos = num_outside,
                                                       .innerpart_factor = kFragmentsPerLoad[axis],
                                                       .decision = {}}));
  std::vector<Factor> factors = as_factors(sampled);
  TW_TRY(loops, schedule.apply(Split{.loop = loop, .factors = {factors}}));
  return SplitLoop{std::move(factors), std::move(loops)};
}

/// C[m, n] becomes C[m of warps, n of warps, m of a warp's fragments, n of them, m in a fragment, n in it].
Result<bool> MultiLevelTilingTensorCore::pack_result(TilingState& state, const Product& product) const {
  TW_TRY(place, state.schedule.state().find(state.block));
  const size_t num_dims = place.block().writes[0]->buffer->shape.size();
  IndexMap map;
  TransformLayout transform{.block = state.block,
                            .buffer = {"write", 0},
                            .index_map = {},
                            .pad_value = {},
                            .assume_injective_transform = true,
                            .values = {}};
  for (size_t d = 0; d < num_dims; ++d) map.initial_indices.emplace_back(var("i" + std::to_string(d)));
  const size_t first_inner = warp_level() + 1;
  /// How many fragments a warp has in one dimension: the product of the sampled tile sizes inside the warp.
  auto num_fragments = [&](size_t dim) {
    Expr product_of_factors;
    for (size_t level = first_inner; level < spatial_levels_.size(); ++level) {
      transform.values.items.push_back(std::get<ExprRV>(state.tile_factors[spatial_levels_[level]][dim]));
      Ref<Var> factor = var("f" + std::to_string(transform.values.items.size() - 1));
      map.initial_indices.emplace_back(factor);
      product_of_factors = product_of_factors.defined() ? product_of_factors * factor : Expr(factor);
    }
    return product_of_factors;
  };
  const Expr rows = map.initial_indices[num_dims - 2], columns = map.initial_indices[num_dims - 1];
  const Expr fragment_row = floordiv(rows, product.fragment_rows);
  const Expr fragment_column = floordiv(columns, product.fragment_columns);
  const Expr warp_rows = num_fragments(0), warp_columns = num_fragments(1);
  for (size_t d = 0; d + 2 < num_dims; ++d) map.final_indices.push_back(map.initial_indices[d]);
  for (const Expr& index : {floordiv(fragment_row, warp_rows), floordiv(fragment_column, warp_columns),
                            floormod(fragment_row, warp_rows), floormod(fragment_column, warp_columns),
                            floormod(rows, product.fragment_rows), floormod(columns, product.fragment_columns)}) {
    map.final_indices.push_back(index);
  }
  transform.index_map.map = make(std::move(map));
  TW_RETURN_IF_ERROR(state.schedule.apply(transform));
  return true;
}

/// Makes `copy` write the original result: inlines the reindexed copy, and the copy that removes padding.
Status MultiLevelTilingTensorCore::write_result(Schedule& schedule, BlockRV copy, const Product& product) {
  TW_TRY(readers, schedule.apply(GetConsumers{copy}));
  const bool pads = !is_same_block(schedule, readers.at(0), product.reindex_result);
  TW_RETURN_IF_ERROR(schedule.apply(ReverseComputeInline{.block = product.reindex_result}));
  if (pads) {  // the copy that removes the padding
    TW_RETURN_IF_ERROR(schedule.apply(ReverseComputeInline{.block = readers[0]}));
  }
  return Ok{};
}

/// Accumulates in fragments, stores them to shared memory by warps, and copies them out cooperatively.
Result<bool> MultiLevelTilingTensorCore::store_fragments(TilingState& state, const Product& product) const {
  Schedule& schedule = state.schedule;
  const BlockRV shared = state.write_reuse.at(0);
  TW_TRY(fragments, schedule.apply(CacheWrite{
                        .block = state.block, .storage_scope = product.scopes.result, .consumer_blocks = {}}));
  /// Returns the four loops over warps and fragments of the six innermost ones; the last two run over a fragment.
  auto outer_loops = [&](BlockRV block) -> Result<std::vector<LoopRV>> {
    TW_TRY(loops, schedule.apply(GetLoops{block}));
    return std::vector<LoopRV>(loops.end() - 6, loops.end() - 2);
  };
  TW_TRY(copied, outer_loops(shared));
  Reorder by_fragment_rows;
  by_fragment_rows.ordered_loops.items = {copied[2], copied[0], copied[1], copied[3]};
  TW_RETURN_IF_ERROR(schedule.apply(by_fragment_rows));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = fragments, .loop = copied[2], .preserve_unit_loops = true}));
  TW_TRY(stored, outer_loops(fragments));
  TW_TRY(warps, schedule.apply(Fuse{.loops = {{stored[0], stored[1]}}}));
  TW_RETURN_IF_ERROR(schedule.apply(Bind{.loop = warps, .thread_axis = kWarpAxis}));
  TW_RETURN_IF_ERROR(write_result(schedule, shared, product));
  TW_TRY(elements, schedule.apply(GetLoops{fragments}));
  TW_TRY(store, schedule.apply(Blockize{.target = {elements[elements.size() - 2]}}));
  TW_RETURN_IF_ERROR(schedule.apply(
      Annotate{.block_or_loop = store, .ann_key = "meta_schedule.auto_tensorize", .ann_val = {product.intrins.store}}));
  TW_TRY(loops, schedule.apply(GetLoops{shared}));
  TW_RETURN_IF_ERROR(schedule.apply(Fuse{.loops = {{loops.end() - 5, loops.end()}}}));
  TW_RETURN_IF_ERROR(annotate_cooperative_fetch(schedule, shared));
  return true;
}

/// Accumulates in registers; each warp writes its tile after the reduction, through shared memory if reuse_write is
/// set.
Result<bool> MultiLevelTilingTensorCore::store_registers(TilingState& state, const Product& product) const {
  TW_TRY(written, state.schedule.apply(WriteAt{.loop = state.tiles[warp_level()].back(),
                                               .block = state.block,
                                               .write_buffer_index = 0,
                                               .storage_scope = product.scopes.result}));
  auto shared = state.write_reuse.find(0);
  const bool copies_through_shared =
      shared != state.write_reuse.end() && !is_same_block(state.schedule, shared->second, product.reindex_result);
  TW_RETURN_IF_ERROR(write_result(state.schedule, copies_through_shared ? shared->second : written, product));
  return true;
}

/// Copies both operands to shared memory in a layout without bank conflicts ("permuted_layout").
Result<TilingStates> MultiLevelTilingTensorCore::copy_operands(TilingState state) const {
  TilingStates result;
  for (int64_t level : options_.reuse_read.levels) {
    TilingState other = state.fork();
    const LoopRV loop = other.tiles[level - 1].back();
    for (size_t i : {0, 1}) {
      TW_TRY(copy, other.schedule.apply(ReadAt{.loop = loop,
                                               .block = other.block,
                                               .read_buffer_index = static_cast<int64_t>(i),
                                               .storage_scope = options_.reuse_read.scope}));
      TW_RETURN_IF_ERROR(other.schedule.apply(Annotate{
          .block_or_loop = copy, .ann_key = kPermutedLayout, .ann_val = {std::string(i == 0 ? "g2s_A" : "g2s_B")}}));
      other.read_reuse[i] = copy;
    }
    result.push_back(std::move(other));
  }
  return result;
}

/// Loads the fragments of both operands from shared memory, by warps, under the second loop of the reduction.
Result<bool> MultiLevelTilingTensorCore::load_fragments(TilingState& state, const Product& product) const {
  Schedule& schedule = state.schedule;
  const LoopRV loop = state.tiles[reduction_levels_[1]].back();
  for (int64_t i : {0, 1}) {
    const std::string& intrin = i == 0 ? product.intrins.load_a : product.intrins.load_b;
    TW_TRY(fragments, schedule.apply(CacheRead{.block = state.block,
                                               .read_buffer_index = i,
                                               .storage_scope = product.scopes.operands[i],
                                               .consumer_blocks = {}}));
    TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = fragments, .loop = loop, .preserve_unit_loops = true}));
    TW_TRY(outer, tile_for_intrin(schedule, fragments, intrin, /*allow_padding=*/false));
    if (!outer) return false;
    if (is_m16n8k8(product.intrins.compute)) {
      TW_RETURN_IF_ERROR(schedule.apply(Annotate{
          .block_or_loop = *outer, .ann_key = kPermutedLayout, .ann_val = {std::string(i == 0 ? "s2l_A" : "s2l_B")}}));
    }
  }
  const BlockRV reindexed[] = {product.reindex_a, product.reindex_b};
  for (size_t i : {0, 1}) {
    auto* copy = find_value(state.read_reuse, i);
    if (!copy) return false;
    TW_TRY(writers, schedule.apply(GetProducers{*copy}));
    if (!is_same_block(schedule, writers.at(0), reindexed[i])) {  // the block that pads
      TW_RETURN_IF_ERROR(schedule.apply(ComputeInline{.block = writers[0]}));
    }
    TW_RETURN_IF_ERROR(schedule.apply(ComputeInline{.block = reindexed[i]}));
    TW_TRY(place, schedule.state().find(*copy));
    DataType dtype = place.block().writes[0]->buffer->dtype;
    TW_RETURN_IF_ERROR(schedule.apply(StorageAlign{
        .block = *copy, .buffer_index = 0, .axis = -2, .factor = kAlignFactor, .offset = dtype.bits == 8 ? 16 : 8}));
  }
  return true;
}

/// Whether the loops of the reduction have more than one iteration in total.
Result<bool> MultiLevelTilingTensorCore::has_steps(TilingState& state) const {
  int64_t num_steps = 1;
  for (size_t level : reduction_levels_) {
    for (LoopRV loop : state.tiles[level]) {
      TW_TRY(place, state.schedule.state().find(loop));
      auto extent = const_int(place.loop().extent);
      if (!extent) return false;
      num_steps *= *extent;
    }
  }
  return num_steps > 1;
}

/// Annotates the copies of both operands with `copies`, the outer loop of the reduction with `outer`, and the inner one
/// with the stages and the order of its two fragment loads and of the product.
Status MultiLevelTilingTensorCore::annotate_pipeline(TilingState& state, const Annotated& copies,
                                                     const Annotated& outer) const {
  auto annotate = [&](BlockOrLoop where, const Annotated& values) -> Status {
    for (const auto& [key, value] : values) {
      TW_RETURN_IF_ERROR(state.schedule.apply(Annotate{.block_or_loop = where, .ann_key = key, .ann_val = value}));
    }
    return Ok{};
  };
  for (const auto& [read, copy] : state.read_reuse) TW_RETURN_IF_ERROR(annotate(copy, copies));
  TW_RETURN_IF_ERROR(
      annotate(state.tiles[reduction_levels_[1]].back(),
               {{"software_pipeline_stage", int_list({0, 0, 1})}, {"software_pipeline_order", int_list({0, 1, 2})}}));
  return annotate(state.tiles[reduction_levels_[0]].back(), outer);
}

/// Loads the operands of the next step while the product of this step is computed: from global memory through registers
/// to a double buffer in shared memory, and from there to fragments.
Status MultiLevelTilingTensorCore::add_software_pipeline(TilingState& state) const {
  // Stages of the outer loop: for each operand, the load to registers and the store to shared memory; then the stages
  // of the inner loop, unrolled.
  return annotate_pipeline(
      state, {{"tir.manifest_shared_memory_local_stage", {int64_t{1}}}, {"double_buffer_scope", {int64_t{0}}}},
      {{"software_pipeline_stage", int_list({0, 0, 0, 0, 0, 1, 1})},
       {"software_pipeline_order", int_list({0, 3, 1, 4, 5, 2, 6})}});
}

/// Pipelines the reduction with asynchronous copies to shared memory, two steps ahead.
Status MultiLevelTilingTensorCore::add_copying_pipeline(TilingState& state) const {
  // Stages of the outer loop: the copies of both operands; then the stages of the inner loop, unrolled.
  return annotate_pipeline(state, {{"vector_bytes", {kAsyncBytes}}},
                           {{"software_pipeline_async_stages", int_list({0})},
                            {"software_pipeline_stage", int_list({0, 0, 1, 2, 2})},
                            {"software_pipeline_order", int_list({0, 1, 3, 2, 4})}});
}

}  // namespace tilewright::search
