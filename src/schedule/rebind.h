// Replaces loop variables by expressions of new loop variables in the statements below, as split, fuse and other loop
// transformations need.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/iter_map.h"
#include "ir/substitute.h"

namespace tilewright::schedule {

class Rebind {
 public:
  /// Knows the ranges of the loops around `at`. With preserve_unit_iters, loops of extent 1 stay in expressions as if
  /// their extent were unknown.
  Rebind(const analysis::Tree& tree, int at, bool preserve_unit_iters);

  void bind(const Ref<Var>& loop_var, const Expr& min, const Expr& extent);
  /// Replaces uses of `from` by `to` from now on.
  void replace(const Ref<Var>& from, Expr to) { map_.emplace(from, std::move(to)); }

  /// The statement in the new variables, with bindings and loop bounds simplified. A `condition` other than null is
  /// added to the predicate of each block met first.
  Stmt operator()(const Stmt& body, const Expr& condition = {});

  arith::Analyzer& analyzer();

 private:
  Expr simplified(const Expr& e);
  bool is_fixed(const Expr& e) const;
  void rebind_axes(BlockRealize& realize);

  arith::Analyzer analyzer_;  ///< knows the first `known_` inputs
  size_t known_ = 0;
  struct Input {
    Ref<Var> loop_var;
    Expr min, extent;
  };
  std::vector<Input> inputs_;    ///< all loops around what is being rebound
  std::vector<Ref<Var>> fixed_;  ///< variables with one iteration
  VarMap map_;
  bool preserve_unit_iters_;
};

}  // namespace tilewright::schedule
