// Copies of buffers: what cache_read and cache_write have in common.
#pragma once

#include "analysis/scope.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Returns the position of the region that the index names. Refuses with CODE if there is no such position, or if not
/// exactly one region has a buffer of that name.
Result<int64_t> buffer_position(const BufferIndex& index, const std::vector<Ref<BufferRegion>>& regions,
                                const Place& block, const std::string& what, const std::string& code);

/// Finds the region that the user means: whether it is a read, and its position. A name or a buffer is searched among
/// the writes first.
Result<std::pair<bool, int64_t>> touched_position(const TouchedBuffer& buffer, const Place& block,
                                                  const std::string& code);

/// The read or the write that a cache is for.
struct CachedAccess {
  Place block;
  int scope;         ///< the block around it
  int64_t position;  ///< among the reads or the writes of the block
  Ref<BufferRegion> region;
};
/// CODES: the block is the root or has no such access; there is no such scope of memory.
struct CachedAccessCodes {
  const char *access, *memory;
};
Result<CachedAccess> cached_read(const State& state, BlockRV block, const BufferIndex& index,
                                 const std::string& storage_scope, const CachedAccessCodes& codes);
Result<CachedAccess> cached_write(const State& state, BlockRV block, const BufferIndex& index,
                                  const std::string& storage_scope, const CachedAccessCodes& codes);

/// Refuses with CODE unless all statements of the scope around the block are in blocks, or cannot touch the memory of a
/// copy.
Status require_only_blocks(const Place& block, int scope, const char* code);

/// Whether a block allocates the buffer: it is neither a parameter nor a view.
bool is_allocated(const Tree& tree, const Ref<Buffer>& buffer);

/// Where a copy goes: before or after a statement.
struct CopyPlace {
  int scope;  ///< the block that allocates the new buffer
  int near;   ///< the statement to stand next to
  bool after;

  /// Whether the location is in the body of the scope, outside of loops: the copied region does not vary there, so the
  /// copy can be as small as the region.
  bool is_direct(const Tree& tree) const;
};
/// Location before or after all statements of a block, but inside of the constants that it declares around them.
CopyPlace start_of(const Tree& tree, int scope);
CopyPlace end_of(const Tree& tree, int scope);
/// Location before the first of these blocks, in the innermost sequence that it shares with the block `from` before it.
CopyPlace before_first(const Tree& tree, int scope, int from, const std::vector<int>& blocks);
/// Whether a loop of the scope with several iterations contains both blocks.
bool share_a_loop(const Tree& tree, int scope, int a, int b);

struct Copy {
  Ref<Buffer> original, cache;
  arith::Region region;      ///< region of the original that is copied
  std::vector<Expr> offset;  ///< offset of the cache within the original
  bool compact;              ///< the cache is as small as the region
  std::string name;          ///< name of the new buffer and of the block
  Expr condition;            ///< under which there is something to copy
  Expr chosen;               ///< selected elements: an index in terms of `chosen_by` for each dimension; null: all
  std::vector<Expr> chosen_by;

  /// Returns the region of the whole original in indices of the cache, for readers of the cache.
  arith::Region whole() const;
  /// Whether the cache has the layout of the original, so that pointers can be redirected to it.
  bool same_layout() const;
};

/// Returns another buffer that the children of the scope use for the same memory: a view of this buffer, or of the
/// buffer that this one is a view of. Null if there is none.
Ref<Buffer> other_name(const Tree& tree, int scope, const Ref<Buffer>& buffer);
/// Refuses with CODE if other_name() finds a buffer.
Status require_one_name(const Place& block, int scope, const Ref<Buffer>& buffer, const char* code,
                        const char* hint = "cache the buffer outside of the block that makes the view");

/// The box that the block at `writer` has written to `write` once `loops` have run, and the condition on loops around
/// them under which it has written anything. Functions that return it assume the condition in the analyzer, so the box
/// and all that follows from it hold under the condition only. Nothing if the box cannot be proved.
struct Written {
  arith::Box box;
  Expr condition;
  Expr chosen;  ///< condition on the axes in the indices of `write` that selects elements of the box; null: all
};
std::optional<Written> written_by(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                  const std::vector<int>& loops, arith::Analyzer& analyzer);
/// Returns the box that is written; if it cannot be proved, the elements that a condition selects.
std::optional<Written> written_or_chosen(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                         const std::vector<int>& loops, arith::Analyzer& analyzer);
/// The copy is of what was written only.
void choose_elements(Copy& copy, const Written& written, const Ref<BufferRegion>& write);

/// Makes a buffer named BUFFER_SCOPE for a region of the original. `compact`: it is as small as the region, which must
/// not vary.
Copy make_copy(const Ref<Buffer>& original, const std::string& scope, arith::Region region, bool compact);
/// Loops ax0, ax1, ... around a block that copies element by element.
Stmt copy_nest(const Copy& copy, bool into_cache, Ref<Block>* made);
/// Replaces accesses to the original in the block's reads, writes, or both. Views of the original become views of the
/// cache; pointers are replaced if the layout is the same.
Ref<Block> redirect(const Ref<Block>& block, const Copy& copy, bool reads, bool writes);
/// Returns the changed block with the axes of the block before. Loads in the domains of axes are not part of the
/// block's read regions, so a copy of these regions may not contain their elements.
Ref<Block> with_axes_of(const Ref<Block>& before, const Ref<Block>& changed);

/// The block, or one inside, uses the buffer's pointer other than by loads and stores.
bool uses_pointer(const Ref<Block>& block, const Ref<Buffer>& buffer);
/// Checks that none of these blocks uses the pointer of the original, unless the copy has the layout of the original.
Status check_pointers(const Tree& tree, const std::vector<int>& blocks, const Copy& copy, const char* code);
/// Why the outermost block around `scope` inside of which the buffer is written might leave elements of it without a
/// value that the scope declares to read, though only a condition keeps it from reading them: a copy reads all of them.
/// Parameters come with values; what blocks of the scope itself write before the place is for others to judge.
std::optional<analysis::Obstacle> why_not_all_written(const State& state, const Place& place, int scope,
                                                      const Ref<Buffer>& buffer);

/// Adds the nest and the buffer.
void place_copy(TreeEdit& edit, const CopyPlace& place, const Copy& copy, Stmt nest);

}  // namespace tilewright::schedule
