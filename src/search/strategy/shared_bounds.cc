#include "search/strategy/shared_bounds.h"

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/primitives/cache_read.h"
#include "schedule/primitives/cache_write.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/reverse_compute_at.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/transform_layout.h"
#include "search/pipeline_versions.h"
#include "search/postprocs/compacted.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;
using analysis::Tree;

namespace {

/// Lower bound on the range of an index: the sum of these multiples of the ranges of axes.
using Spread = std::map<const NodeBase*, int64_t>;

/// Returns the index as a sum of multiples of axes; nothing if it has another form.
std::optional<Spread> spread_of(const Expr& index) {
  if (index.is<IntImm>()) return Spread{};
  if (index.is<Var>()) return Spread{{index.get(), 1}};
  if (const Cast* cast = index.as<Cast>()) return spread_of(cast->value);
  auto combined = [](const Expr& a, const Expr& b, int64_t sign) -> std::optional<Spread> {
    auto one = spread_of(a), other = spread_of(b);
    if (!one || !other) return std::nullopt;
    for (const auto& [axis, by] : *other) (*one)[axis] += sign * by;
    return one;
  };
  if (const Add* add = index.as<Add>()) return combined(add->a, add->b, 1);
  if (const Sub* sub = index.as<Sub>()) return combined(sub->a, sub->b, -1);
  if (const Mul* mul = index.as<Mul>()) {
    auto by = const_int(mul->b);
    auto one = by ? spread_of(mul->a) : std::nullopt;
    if (!one) return std::nullopt;
    for (auto& [axis, times] : *one) times *= *by;
    return one;
  }
  return std::nullopt;
}

}  // namespace

/// The copies to shared memory of a design space.
class SharedCopies {
 public:
  SharedCopies(const Schedule& space, const TileFactors& tiles)
      : space_(space), tiles_(tiles), steps_(space.trace().steps()) {}

  std::vector<SharedBounds::Copy> all() {
    std::vector<SharedBounds::Copy> found;
    for (size_t number : indices_of(steps_)) {
      if (auto back = copy_back(number)) found.push_back(std::move(*back));
      const auto* read = steps_[number]->instruction.as<CacheRead>();
      if (!read || !read->storage_scope.starts_with("shared") || steps_[number]->outputs.empty()) continue;
      for (size_t at = number + 1; at < steps_.size(); ++at) {
        const auto* place = steps_[at]->instruction.as<ComputeAt>();
        if (!place || place->block.index != steps_[number]->outputs[0]) continue;
        if (auto copy = copy_of(*read, number, *place, at)) found.push_back(std::move(*copy));
        break;
      }
    }
    return found;
  }

 private:
  std::optional<SharedBounds::Copy> copy_of(const CacheRead& read, size_t number, const ComputeAt& place, size_t at) {
    const Schedule before = space_.rewound(number);
    auto reader = before.state().find(read.block);
    const auto* index = std::get_if<int64_t>(&read.read_buffer_index);
    if (!reader.ok() || !index || *index < 0) return std::nullopt;
    const Block& block = reader->block();
    if (static_cast<size_t>(*index) >= block.reads.size()) return std::nullopt;
    const BufferRegion& region = *block.reads[*index];
    auto factors = factors_inside(read.block, place.loop, at, block.iter_vars.size());
    if (!factors) return std::nullopt;
    SharedBounds::Copy copy{read.block.index, region.buffer->dtype.bytes() * region.buffer->dtype.lanes, {}, 1, {}};
    for (size_t i : indices_of(region.region)) {
      const auto most = const_int(region.buffer->shape[i]), extent = const_int(region.region[i]->extent);
      if (!most) return std::nullopt;
      SharedBounds::Extent dimension{extent.value_or(1), *most, {}};
      auto spread = spread_of(region.region[i]->min);
      for (size_t axis = 0; spread && axis < block.iter_vars.size(); ++axis) {
        auto by = spread->find(block.iter_vars[axis]->var.get());
        if (by != spread->end() && by->second != 0) dimension.parts.push_back({std::abs(by->second), (*factors)[axis]});
      }
      copy.shape.push_back(std::move(dimension));
    }
    note_versions(copy, steps_[number]->outputs[0]);
    return copy;
  }

  /// The copy of tensor core results between registers and main memory: one row of the tiles that a warp computes at a
  /// time.
  ///
  ///   sch.transform_layout(C, ("write", 0), lambda i, j: (..., i // 16 % (f0 * f1), j // 16 % (f2 * f3), i % 16, j %
  ///   16),
  ///                        values=[v0, v1, v2, v3])
  ///   copy = sch.cache_write(C, 0, "shared.dyn")
  ///   sch.reverse_compute_at(copy, loop)
  std::optional<SharedBounds::Copy> copy_back(size_t number) {
    const auto* write = steps_[number]->instruction.as<CacheWrite>();
    const auto* index = write ? std::get_if<int64_t>(&write->write_buffer_index) : nullptr;
    if (!index || !write->storage_scope.starts_with("shared") || steps_[number]->outputs.empty()) return std::nullopt;
    std::vector<TileFactors::Factor> rows;
    for (size_t at = 0; at < number; ++at) {
      const auto* layout = steps_[at]->instruction.as<TransformLayout>();
      if (!layout || layout->block.index != write->block.index || layout->values.items.size() != 4) continue;
      for (size_t i = 0; i < 2; ++i) {
        auto* factor = find_value(tiles_.values, layout->values.items[i].index);
        if (factor) rows.push_back(*factor);
      }
    }
    if (rows.size() != 2) return std::nullopt;
    for (size_t at = number + 1; at < steps_.size(); ++at) {
      const auto* place = steps_[at]->instruction.as<ReverseComputeAt>();
      if (!place || place->block.index != steps_[number]->outputs[0]) continue;
      const Schedule before = space_.rewound(number);
      auto writer = before.state().find(write->block);
      if (!writer.ok() || static_cast<size_t>(*index) >= writer->block().writes.size()) return std::nullopt;
      const Block& block = writer->block();
      auto factors = factors_inside(write->block, place->loop, at, block.iter_vars.size());
      if (!factors) return std::nullopt;
      const BufferRegion& region = *block.writes[*index];
      // It is written when all operands were read, and shares their bytes.
      SharedBounds::Copy copy{
          steps_[number]->outputs[0], region.buffer->dtype.bytes() * region.buffer->dtype.lanes, {}, 1, {}};
      for (const Ref<Range>& range : region.region) copy.element *= const_int(range->extent).value_or(1);
      for (size_t axis : indices_of(*factors)) {
        if (block.iter_vars[axis]->iter_type != IterType::kDataPar) continue;
        TileFactors::Factors& all = (*factors)[axis];
        std::erase_if(all, [&](const TileFactors::Factor& factor) {
          return any_of(rows, [&](const TileFactors::Factor& row) {
            return row.tile == factor.tile && row.position == factor.position;
          });
        });
        copy.shape.push_back({1, std::numeric_limits<int64_t>::max(), {{1, all}}});
      }
      return agrees(copy, steps_[number]->outputs[0]) ? std::optional(std::move(copy)) : std::nullopt;
    }
    return std::nullopt;
  }

  /// Whether the formula gives what the buffer takes in the design space.
  bool agrees(const SharedBounds::Copy& copy, uint32_t handle) const {
    auto block = space_.state().find(BlockRV{handle});
    auto functions = compacted_functions(space_.module());
    if (!block.ok() || block->block().reads.empty() || !functions.ok()) return false;
    TileFactors::Tilings tilings;
    for (const TileFactors::Tile& tile : tiles_.tiles) tilings.emplace_back(tile.factors);
    const std::string& name = block->block().reads[0]->buffer->name;
    bool found = false;
    for (const Ref<PrimFunc>& func : *functions) {
      visit(func->body, [&](const Ref<Block>& other) {
        for (const Def<Buffer>& buffer : other->alloc_buffers)
          found |= buffer->name == name && bytes_of(*buffer) == copy.bytes_of(tilings);
      });
    }
    return found;
  }

  /// Returns, per axis of the block, the factors of its tile that belong to loops inside of `outer` or to thread loops.
  std::optional<std::vector<TileFactors::Factors>> factors_inside(BlockRV rv, LoopRV outer, size_t at, size_t axes) {
    const Schedule then = space_.rewound(at);
    auto block = then.state().find(rv);
    auto place = then.state().find(outer);
    if (!block.ok() || !place.ok() || block->func != place->func) return std::nullopt;
    const Tree& tree = *block->tree;
    if (!tree.contains(place->at, block->at)) return std::nullopt;
    std::vector<TileFactors::Factors> found(axes);
    for (const auto& [handle, factors] : tiles_.loops) {
      auto loop = handle < then.state().num_handles() ? then.state().find(LoopRV{handle}) : Result<Place>(Place{});
      if (handle >= then.state().num_handles() || !loop.ok() || loop->func != block->func ||
          !tree.contains(loop->at, block->at))
        continue;
      auto thread = analysis::thread_axis(loop->loop());
      const bool is_inside = loop->at > place->at || (thread && thread->in_team());
      if (!is_inside) continue;
      for (const TileFactors::Factor& factor : factors) {
        if (auto axis = axis_of(rv, factor.tile); axis && *axis < axes) found[*axis].push_back(factor);
      }
    }
    return found;
  }

  /// The axis of the block that takes the values of the loop that the tile splits.
  std::optional<size_t> axis_of(BlockRV rv, size_t tile) {
    const size_t step = tiles_.tiles[tile].split;
    if (step == 0) return std::nullopt;
    const Schedule before = space_.rewound(step);
    if (rv.index >= before.state().num_handles()) return std::nullopt;
    auto block = before.state().find(rv);
    auto loop = before.state().find(steps_[step]->instruction.as<Split>()->loop);
    if (!block.ok() || !loop.ok() || block->func != loop->func) return std::nullopt;
    const BlockRealize* realize = block->node().as<BlockRealize>();
    if (!realize || !is_const_int(loop->loop().min, 0)) return std::nullopt;
    for (size_t i : indices_of(realize->iter_values)) {
      if (realize->iter_values[i].get() == loop->loop().loop_var.get()) return i;
    }
    return std::nullopt;
  }

  /// Records the number of versions of the written buffer that a pipeline around the block keeps, if its loop has
  /// several iterations.
  void note_versions(SharedBounds::Copy& copy, uint32_t handle) const {
    auto block = space_.state().find(BlockRV{handle});
    if (!block.ok() || block->block().writes.empty()) return;
    for (const auto& [loop, factors] : tiles_.loops) {
      auto place = loop < space_.state().num_handles() ? space_.state().find(LoopRV{loop}) : block;
      if (!place.ok() || place->func != block->func || place->at == block->at ||
          !block->tree->contains(place->at, block->at))
        continue;
      const int64_t versions = pipeline_versions(place->loop(), block->block().writes[0]->buffer);
      if (versions <= copy.versions) continue;
      copy.versions = versions;
      copy.iterations = factors;
    }
  }

  const Schedule& space_;
  const TileFactors& tiles_;
  const std::vector<const Step*> steps_;
};

SharedBounds::SharedBounds(const Schedule& space, const TileFactors& tiles)
    : copies_(SharedCopies(space, tiles).all()) {}

int64_t SharedBounds::Copy::bytes_of(const TileFactors::Tilings& tilings) const {
  int64_t bytes = element;
  if (versions > 1 && TileFactors::product(iterations, tilings).value_or(1) > 1) bytes *= versions;
  for (const Extent& dimension : shape) {
    int64_t extent = dimension.constant;
    for (const auto& [by, factors] : dimension.parts)
      extent += by * (TileFactors::product(factors, tilings).value_or(1) - 1);
    bytes *= std::min(extent, dimension.most);
  }
  return bytes;
}

int64_t SharedBounds::bytes(const TileFactors::Tilings& tilings) const {
  std::map<uint32_t, int64_t> by_block;
  for (const Copy& copy : copies_) {
    by_block[copy.block] += copy.bytes_of(tilings);
  }
  int64_t most = 0;
  for (const auto& [block, bytes] : by_block) most = std::max(most, bytes);
  return most;
}

}  // namespace tilewright::search
