// Finds how a tensor intrinsic can compute a block: the loops to tile, and the layouts of buffers.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/schedule.h"

namespace tilewright::search {

/// For each loop of a description, outermost first, the corresponding loop of the program.
struct LoopMapping {
  struct Pair {
    schedule::LoopRV loop;
    Ref<For> said;  ///< the description's
  };
  std::vector<Pair> loops;
  std::vector<int64_t> paddings;  ///< by axis of the block, what its extent has to become a multiple of; empty: nothing
};

/// Matches axes from the last to the first: an axis of the description takes the last remaining axis of the block of
/// the same kind, and its loop. The loop's extent has to be a multiple unless padding is allowed. Nothing if an axis
/// has no match.
Result<std::optional<LoopMapping>> loop_mapping(schedule::Schedule& schedule, schedule::BlockRV block,
                                                const PrimFunc& desc, bool allow_padding);

/// Splits and reorders the loops around the block so that the innermost ones are those of the intrinsic, the first of
/// which it gives; pads the block where that is allowed and needed. None where the block does not fit.
Result<std::optional<schedule::LoopRV>> tile_with_tensor_intrin(schedule::Schedule& schedule, schedule::BlockRV block,
                                                                const std::string& intrin_name, bool allow_padding);
/// Tiles, and makes these loops a block that is annotated with the intrinsic that is to compute it.
Result<std::optional<schedule::BlockRV>> tile_for_intrin(schedule::Schedule& schedule, schedule::BlockRV block,
                                                         const std::string& intrin_name, bool allow_padding);

/// The body of the block is that of the description, but for buffers and their indices.
bool computes_as(const schedule::Place& block, const PrimFunc& desc);

/// For each axis of a description, the axes of the block that are joined for it.
struct LayoutMapping {
  Ref<IndexMap> map;       ///< map from the axes of the block to batches, then the description's axes
  size_t num_batches = 0;  ///< axes that the description does not have
  std::unordered_map<NodeRef, Ref<Buffer>> buffers;        ///< buffers of the block, to those of the description
  std::unordered_map<NodeRef, std::vector<Expr>> indices;  ///< indices of the description's buffers
  std::vector<Ref<IterVar>> block_axes, desc_axes;
};
/// Nothing if the block computes something else, or has other access patterns.
std::optional<LayoutMapping> layout_mapping(const schedule::Place& block, const PrimFunc& desc);

}  // namespace tilewright::search
