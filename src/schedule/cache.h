// Inserts copies of buffers. Shared by cache_read, cache_write, reindex and other primitives that cache a buffer.
#pragma once

#include "analysis/scope.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Returns the position of the region that `index` selects, by number or by buffer name. Refuses with `code` if there
/// is no such position, or not exactly one buffer of that name.
Result<int64_t> buffer_position(const BufferIndex& index, const std::vector<Ref<BufferRegion>>& regions,
                                const Place& block, const std::string& what, const std::string& code);

/// Returns whether the selected region is a read, and its position. A name or a buffer is searched among the writes
/// first.
Result<std::pair<bool, int64_t>> touched_position(const TouchedBuffer& buffer, const Place& block,
                                                  const std::string& code);

/// The read or write of a block that is cached.
struct CachedAccess {
  Place block;
  int scope;         ///< the block around it
  int64_t position;  ///< among the reads or the writes of the block
  Ref<BufferRegion> region;
};
/// Error codes: the block is the root or has no such access; there is no such memory scope.
struct CachedAccessCodes {
  const char *access, *memory;
};
Result<CachedAccess> cached_read(const State& state, BlockRV block, const BufferIndex& index,
                                 const std::string& storage_scope, const CachedAccessCodes& codes);
Result<CachedAccess> cached_write(const State& state, BlockRV block, const BufferIndex& index,
                                  const std::string& storage_scope, const CachedAccessCodes& codes);

/// Refuses with `code` if a statement of the scope outside of blocks may access the memory of the copy.
Status require_only_blocks(const Place& block, int scope, const char* code);

/// Whether a block allocates the buffer, which is then neither a parameter nor a view.
bool is_allocated(const Tree& tree, const Ref<Buffer>& buffer);

/// The location of a copy: before or after a statement.
struct CopyPlace {
  int scope;  ///< the block that allocates the new buffer
  int near;   ///< the neighboring statement
  bool after;

  /// Whether the location is in no loop of the scope. The copied region is constant there, so the new buffer can be as
  /// small as the region.
  bool is_outside_loops(const Tree& tree) const;
};
/// Returns the location before or after all statements of a block, but inside of the constant arrays that it declares
/// around them.
CopyPlace start_of(const Tree& tree, int scope);
CopyPlace end_of(const Tree& tree, int scope);
/// Returns the location before the first of `blocks`, in the innermost sequence that contains it and the earlier block
/// `from`.
CopyPlace before_first(const Tree& tree, int scope, int from, const std::vector<int>& blocks);
/// Whether a loop of the scope with several iterations contains both blocks.
bool share_a_loop(const Tree& tree, int scope, int a, int b);

struct Copy {
  Ref<Buffer> original, cache;
  arith::Region region;      ///< region of the original that is copied
  std::vector<Expr> offset;  ///< offset of the cache within the original
  bool compact;              ///< whether the cache has the shape of the region, not of the original
  std::string name;          ///< name of the new buffer and of the block
  Expr condition;            ///< condition under which the original has been written
  Expr mask;                 ///< condition on elements, in terms of the variables `mask_indices`; null: all elements
  std::vector<Expr> mask_indices;  ///< per dimension, the variable that stands for the element's index

  /// Returns the region of the whole original, in indices of the cache.
  arith::Region whole() const;
  /// Whether the cache has the layout of the original, so that pointers can be redirected to it.
  bool same_layout() const;
};

/// Returns another buffer that the children of the scope use for the same memory: a view of this buffer, or of the
/// buffer that this one is a view of. Null if there is none.
Ref<Buffer> other_name(const Tree& tree, int scope, const Ref<Buffer>& buffer);
/// Refuses with `code` if other_name() finds a buffer.
Status require_one_name(const Place& block, int scope, const Ref<Buffer>& buffer, const char* code,
                        const char* hint = "cache the buffer outside of the block that makes the view");

/// The box that a block has surely written when a nest of loops has run, and the condition, outside of these loops,
/// under which it has written anything.
struct Written {
  arith::Box box;
  Expr condition;
  Expr mask;  ///< condition on the axes in the indices of the write that selects elements of the box; null: all
};
/// Returns the box that the block at `writer` writes to `write` in `loops`. Also makes the analyzer assume the
/// condition, without which the box need not be valid. Nothing if no box can be proved.
std::optional<Written> written_by(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                  const std::vector<int>& loops, arith::Analyzer& analyzer);
/// Like written_by(). If no box can be proved without a mask, the result has one.
std::optional<Written> written_with_mask(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                         const std::vector<int>& loops, arith::Analyzer& analyzer);
/// Restricts the copy to the elements that were written.
void set_mask(Copy& copy, const Written& written, const Ref<BufferRegion>& write);

/// Describes a copy to a new buffer, named BUFFER_SCOPE. `compact`: it has the shape of the region, which must be
/// constant.
Copy make_copy(const Ref<Buffer>& original, const std::string& scope, arith::Region region, bool compact);
/// Returns loops ax0, ax1, ... around a block that copies the elements, and that block in `made`.
Stmt copy_nest(const Copy& copy, bool into_cache, Ref<Block>* made);
/// Replaces accesses to the original in the block's reads, writes, or both. Views of the original become views of the
/// cache; pointers are replaced if the layout is the same.
Ref<Block> redirect(const Ref<Block>& block, const Copy& copy, bool reads, bool writes);
/// Returns the changed block with the original axes. Loads in axis domains are not part of the block's read regions, so
/// a copy of these regions may not contain their elements.
Ref<Block> with_axes_of(const Ref<Block>& before, const Ref<Block>& changed);

/// Whether the block, or one inside, uses the buffer's pointer other than by loads and stores.
bool uses_pointer(const Ref<Block>& block, const Ref<Buffer>& buffer);
/// Checks that none of these blocks uses the pointer of the original, unless the copy has the layout of the original.
Status check_pointers(const Tree& tree, const std::vector<int>& blocks, const Copy& copy, const char* code);
/// Returns why elements in the read regions of the block `scope` may be uninitialized. The original program may skip
/// such reads under a condition, but a copy reads the whole region. Checks the outermost block around `scope` in which
/// the buffer is written. Parameters are initialized; writes of the scope itself are checked elsewhere.
std::optional<analysis::Obstacle> why_not_all_written(const State& state, const Place& place, int scope,
                                                      const Ref<Buffer>& buffer);

/// Inserts the nest at the location, and allocates the buffer in the scope.
void place_copy(TreeEdit& edit, const CopyPlace& place, const Copy& copy, Stmt nest);

}  // namespace tilewright::schedule
