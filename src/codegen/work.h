// How much a piece of lowered code computes, as far as it can be read off: decides how many iterations of a parallel
// loop are worth another thread, and which loops are already vector code.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/stmt.h"

namespace tilewright::codegen {

/// About 20 microseconds of scalar work, several times what waking a thread costs.
inline constexpr int64_t kOperationsPerRange = 40000;
/// Iterations below which handing a range to another thread costs more than it gains: those of `kOperationsPerRange`.
int64_t parallel_grain(const For& loop);
/// Operations, an estimate: unknown trip counts are taken as 16.
double count_operations(const Stmt& body);
/// Whether vectors are loaded or stored somewhere inside.
bool has_vector_code(const Stmt& body);

/// Operations as expressions of what is known around a piece of code; each piece is looked at once.
class Operations {
 public:
  Expr of(const Stmt& body);
  /// The work of one iteration, in the middle of the loop where they differ.
  Expr of_iteration(const For& loop);

 private:
  /// A count outside of the scope of a variable.
  static Expr without(const Expr& count, const Ref<Var>& v, const Expr& value);

  std::unordered_map<NodeRef, Expr> known_;
};

}  // namespace tilewright::codegen
