// Replace variables that stand for index arithmetic by what they stand for.
//
//   Before                              After
//   for j in range(64):                 for j in range(64):
//     a: T.int32 = T.max(j - 1, 0)        B[j] = A[T.max(j - 1, 0)]
//     B[j] = A[a]
//
// So the passes behind see the same program whether clamped indices and conditions have names or not. A value stays
// where it was when it reads memory, when its arithmetic may leave its type (arithmetic of indices is taken not to), or
// when it is large and would be copied.
//
// Needs      flat buffers
// Ensures    no variable stands for small integer arithmetic of loop variables and sizes
// Placement  before peel_edges, which looks for clamped indices
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/index_variables.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Nodes of a value, at most, that is copied to each place where it is used: names of names would double it each time.
constexpr int64_t kMostNodesOfIndex = 64;

int64_t size_of(const NodeRef& node) {
  int64_t size = 1;
  for_each_child(node, [&](const NodeRef& child, Role) { size += size_of(child); });
  return size;
}

class LetInliner : private LoopContext {
 public:
  using LoopContext::LoopContext;

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(values_, v, v); },
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          analyzer_.bind(loop->loop_var, r(loop->min), r(loop->extent));
          variables_.enter(*loop);
          Stmt after = r.descend(loop);
          variables_.leave(*loop);
          return after;
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          Expr value = r(let->value);
          if (!is_inlined(let->var, value)) return r.descend(let);
          values_[let->var] = value;
          return r(let->body);
        });
  }

 private:
  bool is_inlined(const Ref<Var>& v, const Expr& value) {
    const bool is_index = value.dtype().is_integral() && value.dtype().is_scalar() && variables_.note(v, value);
    return is_index && size_of(value) <= kMostNodesOfIndex;
  }

  VarMap values_;
};

}  // namespace

PassResult inline_lets(const Ref<PrimFunc>& func, PassContext&) {
  if (!has_node<LetStmt>(func->body)) return func;
  return with_body(func, LetInliner(*func).run(func->body));
}

}  // namespace tilewright::lower
