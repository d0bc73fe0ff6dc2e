// Where the threads of a team wait for one another: between statements, one of which writes what the other one reads or
// writes, in memory that threads share. Statements run in their order for the team as a whole, as lowering has it in
// TVM (ThreadSync): blocks by all memory that threads share, plain statements by shared memory alone. A function
// without blocks that has barriers (T.tvm_storage_sync), or that is a kernel, has all that it needs: a missing one is a
// race.
#pragma once

#include <functional>
#include <unordered_set>

#include "analysis/memory_names.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// The memory through which statements depend on one another.
enum class Exchange {
  kTeamMemory,    ///< all that threads share
  kSharedMemory,  ///< memory of scope "shared"
};
/// Returns which memory to look at. A statement with blocks may name team memory of any scope; lowered code exchanges
/// values through "shared".
Exchange exchange_of(const Stmt& s);

/// Pointers to memory that threads share, by what a statement or expression does to it. Those of views, in it and
/// `around` it, count as what they show.
struct Touched {
  std::unordered_set<const NodeBase*> read, written;
  std::unordered_set<const NodeBase*> updated;  ///< by atomic operations, which have no order among themselves

  static Touched by(const NodeRef& root, Exchange exchange, const MemoryNames& around = {});
  void add(const Touched& other);
  /// The order of the two matters.
  bool depends_on(const Touched& other) const;
};

bool has_blocks(const Stmt& s);
/// Whether the threads of the function wait where the order of statements matters, without barriers that say so.
bool waits_by_order(const PrimFunc& func);
/// Somewhere in the statement, the threads that run it wait for one another, in a function that waits by order.
bool has_waits(const Stmt& s, const MemoryNames& around = {});
/// An iteration of a loop of plain statements uses shared memory as the one before it left it.
bool waits_for_next(const Stmt& body, const MemoryNames& around = {});
/// A condition or loop bound reads shared memory that the plain statements in its body write.
bool waits_behind(const Expr& condition, const Stmt& body, const MemoryNames& around = {});
/// Whether all threads of a team get the same value: from variables that do not vary, and from memory that the team
/// shares, if barriers separate reads from writes.
bool is_uniform(const Expr& e, const std::function<bool(const Ref<Var>&)>& varies);

}  // namespace tilewright::analysis
