// Asynchronous copies: T.ptx_cp_async(dtype, to, place, from, place, bytes[, condition]), T.ptx_commit_group() and
// T.ptx_wait_group(n).
//
// A thread starts copies of 4, 8 or 16 bytes from global to shared memory. T.ptx_commit_group() closes a group of those
// started since the last one. T.ptx_wait_group(n) waits until all groups but the last n have arrived: before that, what
// is at their destination is not defined. Where the condition does not hold, zeros arrive. Places are in elements.
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

  /// Nothing if the call is none, or not of constant size.
  static std::optional<AsyncCopy> of(const Expr& value);
  int64_t elements() const { return bytes / dtype.bytes(); }
  Stmt call() const;
  /// Returns a loop that copies the elements synchronously.
  Stmt as_loop() const;
};

/// Whether the value starts a copy, closes a group or waits for groups.
bool is_async_step(const Expr& value);
bool is_wait_for_copies(const Expr& value);
/// How many groups may still be under way behind a wait; nothing for other values, or where it is not a constant.
std::optional<int64_t> running_behind(const Expr& value);
bool closes_group(const Expr& value);
Stmt commit_group();
Stmt wait_group(int64_t running);

}  // namespace tilewright
