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
    Ref<For> desc_loop;  ///< the corresponding loop of the description
  };
  std::vector<Pair> loops;
  std::vector<int64_t> paddings;  ///< per axis of the block: pad its extent to a multiple of this; empty: no padding
};

/// Matches axes from the last to the first: each axis of the description is mapped to the last unmatched axis of the
/// block with the same kind, and to its loop. The loop's extent has to be a multiple of the description's unless
/// padding is allowed. Returns nothing if an axis has no match.
Result<std::optional<LoopMapping>> loop_mapping(schedule::Schedule& schedule, schedule::BlockRV block,
                                                const PrimFunc& desc, bool allow_padding);

/// Splits and reorders the loops around the block so that the innermost ones are those of the intrinsic, and returns
/// the outermost of these. Pads the block if that is allowed and needed. Returns nothing if the block does not match.
Result<std::optional<schedule::LoopRV>> tile_with_tensor_intrin(schedule::Schedule& schedule, schedule::BlockRV block,
                                                                const std::string& intrin_name, bool allow_padding);
/// Like tile_with_tensor_intrin(), and then blockizes the inner loops and annotates the new block with the intrinsic,
/// for RewriteTensorize.
Result<std::optional<schedule::BlockRV>> tile_for_intrin(schedule::Schedule& schedule, schedule::BlockRV block,
                                                         const std::string& intrin_name, bool allow_padding);

/// Whether the body of the block is that of the description, except for buffers and their indices.
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
