#include "arith/same_program.h"

#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural_proof.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// Whether the value follows from variables alone, and from the length of scalable vectors.
bool is_index(const Expr& e) {
  if (!e.dtype().is_int() || e.dtype().bits < 32) return false;
  return !has_node<BufferLoad, FloatImm>(e) &&
         !any_node(e, [](const Ref<Call>& call) { return intrinsic_of(*call) != Intrinsic::k_vscale; });
}

/// Context of an expression: ranges of variables, and conditions under which it is evaluated.
class Surroundings {
 public:
  explicit Surroundings(std::span<const NodeRef> around) {
    for (size_t i : indices_of(around)) enter(around[i], i + 1 < around.size() ? around[i + 1] : NodeRef());
  }
  Analyzer& analyzer() { return analyzer_; }

 private:
  void enter(const NodeRef& node, const NodeRef& next) {
    if (const PrimFunc* func = node.as<PrimFunc>()) {
      for (const auto& [param, buffer] : func->buffer_map) {
        for (const Expr& extent : buffer->shape) {
          if (extent.is<Var>()) analyzer_.assume(ge(extent, 0));
        }
      }
    } else if (const For* loop = node.as<For>()) {
      if (next == loop->body) analyzer_.bind(loop->loop_var, make<Range>({loop->min, loop->extent}));
    } else if (const Block* block = node.as<Block>()) {
      for (const Ref<IterVar>& axis : block->iter_vars) analyzer_.bind(axis->var, axis->dom);
    } else if (const BlockRealize* realize = node.as<BlockRealize>()) {
      if (next == realize->block) analyzer_.assume(realize->predicate);
    } else if (const IfThenElse* branch = node.as<IfThenElse>()) {
      if (next == branch->then_case) analyzer_.assume(branch->condition);
      if (branch->else_case.defined() && next == branch->else_case) analyzer_.assume(logical_not(branch->condition));
    }
  }

  Analyzer analyzer_;
};

class IndexProver final : public DifferenceProver {
 public:
  bool equal(const Expr& lhs, const Expr& rhs, std::span<const Pair> bound, std::span<const NodeRef> around) override {
    if (!is_index(lhs) || !is_index(rhs)) return false;
    VarMap to_left;
    for (const Pair& pair : bound) {
      if (pair.rhs.is<Var>() && pair.lhs.is<Var>()) to_left[pair.rhs] = Expr(pair.lhs);
    }
    Surroundings here(around);
    if (!here.analyzer().can_prove_equal(lhs, substitute(rhs, to_left))) return false;
    const NodeBase* function = nullptr;
    for (const NodeRef& node : around) {
      if (node.is<PrimFunc>()) function = node.get();
    }
    functions_.insert(function);
    return true;
  }
  int64_t functions() const { return static_cast<int64_t>(functions_.size()); }

 private:
  std::unordered_set<const NodeBase*> functions_;
};

}  // namespace

SameProgram compare_up_to_indices(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars) {
  IndexProver prover;
  SameProgram result;
  result.mismatch = find_mismatch(lhs, rhs, map_free_vars, prover);
  result.functions = prover.functions();
  return result;
}

}  // namespace tilewright::arith
