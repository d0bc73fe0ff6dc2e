// Determines between which statements the threads of a GPU block (a team) need a barrier: two statements of which one
// writes what the other reads or writes in memory that threads share. The interpreter and lowering insert barriers
// there, as TVM's ThreadSync pass does.
//
//   S[tx] = A[tx]                                 needs a barrier in between, since another thread wrote S[31 - tx]
//   B[tx] = S[31 - tx]
//
// For statements with blocks, all memory that threads share counts; for lowered statements, memory of scope "shared". A
// function without blocks that contains barriers (T.tvm_storage_sync), or that is a kernel, must contain all barriers
// that it needs. A missing one is a race.
#pragma once

#include <functional>
#include <unordered_set>

#include "analysis/memory_names.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// The memory that is checked for dependences between statements.
enum class Exchange {
  kTeamMemory,    ///< all memory that threads share
  kSharedMemory,  ///< memory of scope "shared"
};
/// Returns which memory to check. A statement with blocks may use team memory of any scope; lowered code exchanges
/// values through "shared" only.
Exchange exchange_of(const Stmt& s);

/// The memory that a statement or expression reads, writes and updates, as data variables of buffers. Only memory that
/// threads share is listed. Views, in the statement and `around` it, count as the buffers that they view.
struct Touched {
  std::unordered_set<const NodeBase*> read, written;
  std::unordered_set<const NodeBase*> updated;  ///< by atomic operations, which need no order among themselves

  static Touched by(const NodeRef& root, Exchange exchange, const MemoryNames& around = {});
  void add(const Touched& other);
  /// Whether the order of the two statements matters.
  bool depends_on(const Touched& other) const;
};

bool has_blocks(const Stmt& s);
/// Whether barriers are implied wherever the order of statements matters, instead of being written in the function.
bool has_implicit_barriers(const PrimFunc& func);
/// Whether the statement needs a barrier inside. For functions with implicit barriers.
bool needs_barriers(const Stmt& s, const MemoryNames& around = {});
/// Whether a loop with this body, without blocks, needs a barrier between iterations.
bool needs_barrier_between_iterations(const Stmt& body, const MemoryNames& around = {});
/// Whether a barrier is needed between a condition or loop bound and the body, without blocks, that writes the shared
/// memory it reads.
bool needs_barrier_after_condition(const Expr& condition, const Stmt& body, const MemoryNames& around = {});
/// Whether the expression has the same value in all threads of a team: it depends only on variables for which `varies`
/// is false, and on memory that the team shares. Assumes that barriers separate reads from writes.
bool is_uniform(const Expr& e, const std::function<bool(const Ref<Var>&)>& varies);

}  // namespace tilewright::analysis
