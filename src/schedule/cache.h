// Copies of buffers: what cache_read and cache_write have in common.
#pragma once

#include "analysis/scope.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// "" and those that begin like these: global, shared, local, warp, wmma..., texture, ...
bool is_storage_scope(const std::string& scope);

/// Which of the regions is meant. CODE when there is no such position, or no single buffer of that name.
Result<int64_t> buffer_position(const BufferIndex& index, const std::vector<Ref<BufferRegion>>& regions,
                                const Place& block, const std::string& what, const std::string& code);

/// Where a copy goes: before or after a statement, or at the start or end of a block's body.
struct CopyPlace {
  int scope;          ///< the block that allocates the new buffer
  int near = -1;      ///< the statement to stand next to; -1: at the start or end of the scope's body
  bool after = true;  ///< after it (at the end), else before it (at the start)
};

struct Copy {
  Ref<Buffer> original, cache;
  arith::Region region;      ///< what is copied, of the original
  std::vector<Expr> offset;  ///< of the cache within the original
  std::string name;          ///< of the new buffer and of the block
  Expr condition;            ///< under which there is something to copy

  /// The original in indices of the cache: what readers of the cache may want of it.
  arith::Region whole() const;
};

/// Another buffer that the children of the scope use for the same memory: a view of this one or of what it is a view
/// of. Null if there is none.
Ref<Buffer> other_name(const Tree& tree, int scope, const Ref<Buffer>& buffer);

/// What the block at `writer` has written to `write` once `loops` have run, and the condition on loops around them
/// under which it has written anything. Nothing if that cannot be proved.
struct Written {
  arith::Box box;
  Expr condition;
};
std::optional<Written> written_by(const Tree& tree, int writer, const Ref<BufferRegion>& write,
                                  const std::vector<int>& loops, arith::Analyzer& analyzer);

/// A new buffer BUFFER_SCOPE for a region of the original; `compact`: as small as the region, which must not vary then.
Copy make_copy(const Ref<Buffer>& original, const std::string& scope, arith::Region region, bool compact);
/// Loops ax0, ax1, ... around a block that copies element by element.
Stmt copy_nest(const Copy& copy, bool into_cache, Ref<Block>* made);
/// The block with accesses to the original replaced: what it reads, what it writes, or both. Its views of the original
/// become views of the cache.
Ref<Block> redirect(const Ref<Block>& block, const Copy& copy, bool reads, bool writes);

/// Adds the nest and the buffer.
void place_copy(TreeEdit& edit, const Tree& tree, const CopyPlace& place, const Copy& copy, Stmt nest);

}  // namespace tilewright::schedule
