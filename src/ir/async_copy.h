// Asynchronous copies: T.ptx_cp_async(dtype, to, to_place, from, from_place, bytes[, condition]), T.ptx_commit_group()
// and T.ptx_wait_group(n).
//
// A thread starts copies of 4, 8 or 16 bytes from global to shared memory. If the condition is false, zeros are
// written. T.ptx_commit_group() puts all copies since the last call into one group. T.ptx_wait_group(n) waits until all
// groups but the last n are complete. The destination is undefined until its group is complete. Places are offsets in
// elements.
#pragma once

#include <optional>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

struct AsyncCopy {
  Ref<Var> to, from;
  DataType dtype;  ///< data type of the elements
  Expr to_place, from_place;
  int64_t bytes = 0;
  Expr condition;  ///< null: always

  /// Returns nothing if the value is not an asynchronous copy, or if its size is not constant.
  static std::optional<AsyncCopy> of(const Expr& value);
  int64_t elements() const { return bytes / dtype.bytes(); }
  Stmt call() const;
  /// Returns a loop that copies the elements synchronously.
  Stmt as_loop() const;
};

/// Whether the value starts a copy, closes a group or waits for groups.
bool is_async_step(const Expr& value);
bool is_wait_for_copies(const Expr& value);
/// Returns n of T.ptx_wait_group(n), the number of groups that may be incomplete after it. Nothing for other values,
/// and if n is not constant.
std::optional<int64_t> running_behind(const Expr& value);
bool closes_group(const Expr& value);
Stmt commit_group();
Stmt wait_group(int64_t running);

}  // namespace tilewright
