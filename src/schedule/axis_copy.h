// Copies with the axes of a block as indices: what reindex, reindex_cache_read and reindex_cache_write have in common.
#pragma once

#include "schedule/cache.h"

namespace tilewright::schedule {

/// The indices of the one element of the buffer that each instance of a block touches, by loads and stores only. CODE
/// where the block holds other blocks, touches several elements, or says so otherwise than by its axes.
Result<std::vector<Expr>> only_element(const Place& block, const Ref<Buffer>& buffer, const char* code);

/// Positions of the axes that the indices speak of, in the order of the block.
std::vector<size_t> axes_used(const Block& block, const std::vector<Expr>& indices);

/// CODE unless the indices are in bounds for all values of the axes, because a copy accesses every one of them.
Status check_inside(const Place& block, const std::vector<Expr>& indices, const Ref<Buffer>& buffer, const char* code);

/// A loop around the block, or something that the block defines inside.
bool is_foreign(const Place& block, const Ref<Var>& v);

/// Returns a box that contains all elements of the buffer that such a copy touches.
arith::Box box_of_axes(const Block& block, const std::vector<Expr>& indices);

/// The block with `indices` of the cache in place of its element of the original.
Ref<Block> at_element(const Ref<Block>& block, const Ref<Buffer>& original, const Ref<Buffer>& cache,
                      const std::vector<Expr>& indices);

/// One side of a copy.
struct Element {
  Ref<Buffer> buffer;
  std::vector<Expr> indices;
};
/// `guard`: the condition under which the element is read, else 0 is stored; null: always.
Ref<Block> copying_block(std::vector<Ref<IterVar>> axes, Element from, Element to, std::string name,
                         const Expr& guard = {});

/// The element that stands for the axes of a block, those at these positions: what a block has done of it says which
/// values of the axes it has run over, with all its reductions.
Ref<BufferRegion> axes_as_region(const Block& block, const std::vector<size_t>& positions);

/// A cache of which a block's axes say the indices, and how to copy between it and the original.
struct AxisCache {
  Ref<Buffer> original, cache;
  std::vector<Expr> old_indices, new_indices;  ///< in the axes of the block
  std::vector<size_t> axes;                    ///< axes that occur in both
  Expr condition;                              ///< under which there is something to copy
  Expr guard = {};  ///< in the axes: under which the element is read, else 0 is stored; null: always
};
/// Codes of reindex_cache_read and reindex_cache_write. CODES: what is accessed is one element; the map fits it.
struct AxisCacheCodes {
  const char *element, *map, *inside;
};
Result<AxisCache> axis_cache(const Place& block, const Ref<Buffer>& buffer, const std::string& storage_scope,
                             const IndexMap& map, const AxisCacheCodes& codes);
/// The loops of the block below `outside` that its axes need, with names of their own, around the block that copies.
/// CODE where that is not all that says whether an instance runs.
Result<Stmt> axis_copy_nest(const Place& block, int outside, const AxisCache& cache, bool into_cache, const char* code,
                            Ref<Block>* made);

/// Inserts the copy into the program, and redirects the accesses of the block to the cache.
Plan insert_axis_copy(const Place& block, const CopyPlace& place, const AxisCache& cache, const Stmt& nest);

}  // namespace tilewright::schedule
