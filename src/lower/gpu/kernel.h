// Barriers, kernels, and the thread axes that loops are bound to: shared by the passes for GPUs.
//
// A kernel is the outermost loop that is bound to a thread axis, with everything inside it. Its loops over blocks run
// on the grid, its loops over threads on the team of each block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/annotations.h"
#include "ir/stmt.h"
#include "target/thread_axis.h"

namespace tilewright::lower {

/// T.tvm_storage_sync("shared"): the threads of a team wait for one another.
Stmt barrier(SpanId span = 0);
bool is_barrier(const Stmt& s);
bool has_barrier(const Stmt& s);

/// Whether the loop is bound to threads of any kind.
inline bool is_bound(const For& loop) { return loop.kind == ForKind::kThreadBinding; }
/// A loop over [0, extent) bound to the axis `tag`.
Stmt bound_loop(const Ref<Var>& v, const Expr& extent, const std::string& tag, Stmt body, SpanId span = 0);

/// Whether an access or a declaration in `root` names the buffer.
bool uses_buffer(const NodeRef& root, const Ref<Buffer>& buffer);

inline bool is_shared_scope(const std::string& scope) { return scope.starts_with("shared"); }
inline bool is_global_scope(const std::string& scope) { return scope.starts_with("global"); }

/// Loops over blocks and threads at the root of a kernel, outermost first.
struct KernelLoops {
  std::vector<Ref<For>> loops;
  Stmt body;

  static KernelLoops of(Stmt kernel);
  /// `body` in these loops.
  Stmt around(Stmt body) const;
  bool has_thread(const NodeRef& variable) const;
};

}  // namespace tilewright::lower
