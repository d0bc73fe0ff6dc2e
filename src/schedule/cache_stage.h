// A copy of a buffer with a block that fills it or writes it back: what cache_read and cache_write have in common.
#pragma once

#include "arith/int_set.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// A buffer named BUFFER_SCOPE of the same shape and dtype.
Ref<Buffer> make_cache(const Ref<Buffer>& buffer, const std::string& storage_scope);

struct CacheStage {
  Stmt nest;  ///< loops ax0, ax1, ... around a BlockRealize
  Ref<Block> block;
};
/// to[v0, v1, ...] = from[v0, v1, ...] for all elements of the box; a null box is the whole buffer.
CacheStage copy_stage(const Ref<Buffer>& from, const Ref<Buffer>& to, const std::string& name, const arith::Box& box,
                      arith::Analyzer& analyzer);

/// METHOD/P1: position of the buffer among the regions.
Result<int64_t> resolve_buffer(const Place& block, const std::vector<Ref<BufferRegion>>& regions,
                               const BufferIndex& index, const std::string& method);
/// METHOD/P2: a scope that programs know.
Status check_storage_scope(const Place& block, const std::string& storage_scope, const std::string& method);
/// The blocks of the scope that are to read the cache: the given ones, or all readers of the buffer but `except`.
/// METHOD/P3 for one that does not read it.
Result<std::vector<int>> cache_readers(const State& state, const Place& block, const Ref<Buffer>& buffer,
                                       const std::vector<BlockRV>& given, bool all_by_default,
                                       const std::string& method);
/// The statement of the scope's body (a direct child, through sequences) that holds the position.
int outermost_statement(const Tree& tree, int at);
/// The block with one buffer in the place of another, everywhere inside.
Stmt with_buffer(const Tree& tree, int block, const Ref<Buffer>& from, const Ref<Buffer>& to);

}  // namespace tilewright::schedule
