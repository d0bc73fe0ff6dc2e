// Copies with the axes of a block as indices: shared by reindex, reindex_cache_read and reindex_cache_write.
#pragma once

#include "schedule/cache.h"

namespace tilewright::schedule {

/// Returns the indices of the one element of the buffer that each instance of a block accesses, by loads and stores
/// only. Refuses with `code` if the block contains blocks, touches several elements, or its indices depend on more than
/// its axes.
Result<std::vector<Expr>> only_element(const Place& block, const Ref<Buffer>& buffer, const char* code);

/// Returns the positions of the axes that occur in the indices, in the order of the block.
std::vector<size_t> axes_used(const Block& block, const std::vector<Expr>& indices);

/// Refuses with `code` unless the indices are in bounds for all values of the axes, because a copy accesses every one
/// of them.
Status check_inside(const Place& block, const std::vector<Expr>& indices, const Ref<Buffer>& buffer, const char* code);

/// Whether the variable is a loop around the block, or is defined inside of the block.
bool is_foreign(const Place& block, const Ref<Var>& v);

/// Returns a box that contains all elements of the buffer that such a copy touches.
arith::Box box_of_axes(const Block& block, const std::vector<Expr>& indices);

/// Returns the block with the cache at `indices` in place of the original's element.
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

/// Returns the region of an array with one element for each combination of these axes: dependences on it show which
/// values of the axes a block has run over, with all its reductions.
Ref<BufferRegion> axes_as_region(const Block& block, const std::vector<size_t>& positions);

/// A cache that is indexed by a block's axes, and how to copy between it and the original.
struct AxisCache {
  Ref<Buffer> original, cache;
  std::vector<Expr> old_indices, new_indices;  ///< indices in terms of the axes of the block
  std::vector<size_t> axes;                    ///< axes that occur in both
  Expr condition;                              ///< condition under which the original has been written
  Expr guard = {};  ///< condition on the axes under which the element is read, else 0 is stored; null: always
};
/// Error codes, which differ between reindex_cache_read and reindex_cache_write: the access is not one element; the map
/// does not fit it.
struct AxisCacheCodes {
  const char *element, *map, *inside;
};
Result<AxisCache> axis_cache(const Place& block, const Ref<Buffer>& buffer, const std::string& storage_scope,
                             const IndexMap& map, const AxisCacheCodes& codes);
/// Returns the loops of the block below `outside` that its axes need, with new variables, around the block that copies.
/// Refuses with `code` if other loops or conditions also determine whether an instance runs.
Result<Stmt> axis_copy_nest(const Place& block, int outside, const AxisCache& cache, bool into_cache, const char* code,
                            Ref<Block>* made);

/// Inserts the copy into the program, and redirects the accesses of the block to the cache.
Plan insert_axis_copy(const Place& block, const CopyPlace& place, const AxisCache& cache, const Stmt& nest);

}  // namespace tilewright::schedule
