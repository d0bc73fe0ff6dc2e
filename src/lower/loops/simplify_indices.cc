// Simplify indices, extents and conditions.
//
//   Before                                       After
//   for i in range(16):                          for i in range(16):
//     B[(i * 4 + 2) // 4] = A[i % 32]              B[i] = A[i]
//
// Values that are stored stay as they are: only index arithmetic is known not to overflow. A condition of a value may
// be arithmetic of numbers that wraps around, `4 > 0 - -2147483648`: it is decided by what runs.
//
// Needs      flat buffers
// Ensures    what the ranges of the loops decide is decided: conditions, minima, quotients; loops of one iteration and
//            bindings of integers to constants and variables are gone; a condition around all that a loop does is
//            outside of it where it is the same in each iteration
// Placement  before loops are copied by vectorizing and unrolling
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/index_variables.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

class Simplifier : private LoopContext {
 public:
  using LoopContext::LoopContext;

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return simplify_loop(loop, r); },
        [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt { return simplify_branch(*branch, branch, r); },
        [&](const Ref<SeqStmt>& all, Rewriter& r) -> Stmt { return seq(r.descend(all)->seq); },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          Expr value = r(let->value);
          if (let->value.dtype().is_integral() && effect_of(value) == Effect::kPure && !variables_.may_wrap(value)) {
            value = index(value);
            variables_.note(let->var, value);
          }
          if (is_data(value)) data_.insert(let->var);
          bool trivial = value.is<IntImm>() || value.is<Var>();
          if (trivial && value.dtype().is_integral()) return r(substitute(let->body, {{let->var, value}}));
          return make<LetStmt>({let->var, value, r(let->body)}, let.span());
        },
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          std::vector<Expr> indices = inner->indices;
          bool changed = false;
          for (Expr& i : indices) {
            Expr simple = index(i);
            changed |= simple != i;
            i = simple;
          }
          if (!changed) return inner;
          return make<BufferLoad>({inner->buffer, std::move(indices), inner->predicate}, load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          Ref<BufferStore> inner = r.descend(store);
          std::vector<Expr> indices = inner->indices;
          for (Expr& i : indices) i = index(i);
          return make<BufferStore>({inner->buffer, inner->value, std::move(indices), inner->predicate}, store.span());
        },
        [&](const Ref<Select>& select, Rewriter& r) -> Expr {
          Ref<Select> inner = r.descend(select);
          Expr condition = decide(inner->condition);
          if (is_true(condition) && condition.dtype().is_scalar()) return inner->true_value;
          if (is_false(condition) && condition.dtype().is_scalar()) return inner->false_value;
          if (condition == inner->condition) return inner;
          return make<Select>({condition, inner->true_value, inner->false_value}, select.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          Ref<Call> inner = r.descend(call);
          if (intrinsic_of(*call) != Intrinsic::k_if_then_else) return inner;
          Expr condition = decide(inner->arg(0));
          if (is_true(condition)) return inner->arg(1);
          if (is_false(condition)) return inner->arg(2);
          if (condition == inner->arg(0)) return inner;
          return make<Call>({inner->dtype, inner->op, {condition, inner->args[1], inner->args[2]}}, call.span());
        });
  }

 private:
  Expr index(const Expr& e) {
    return is_data(e) && (effect_of(e) != Effect::kPure || variables_.may_wrap(e)) ? e : analyzer_.simplify(e);
  }
  /// Whether it is made of what comes from memory, whose arithmetic wraps in indices, too.
  bool is_data(const Expr& e) const { return effect_of(e) != Effect::kPure || uses_any_of(e, data_); }
  Expr decide(const Expr& condition) {
    return variables_.is_decidable(condition) ? analyzer_.simplify(condition) : condition;
  }
  Stmt simplify_loop(const Ref<For>& loop, Rewriter& r) {
    Expr low = index(r(loop->min)), extent = index(r(loop->extent));
    if (auto known = const_int(extent)) {
      if (*known <= 0) return nop();
      if (*known == 1 && loop->kind != ForKind::kParallel && loop->kind != ForKind::kThreadBinding) {
        return r(substitute(loop->body, {{loop->loop_var, low}}));
      }
    }
    For copy = *loop;
    copy.min = low;
    copy.extent = extent;
    copy.body = inside(copy, [&] { return r(loop->body); });
    if (is_nop(copy.body)) return nop();
    std::vector<Expr> outside;
    if (copy.kind != ForKind::kParallel && copy.kind != ForKind::kThreadBinding) {
      copy.body = without_outside(copy.body, copy.loop_var, outside);
    }
    Stmt result = make(std::move(copy), loop.span());
    for (const Expr& condition : reversed(outside)) result = make<IfThenElse>({condition, result, {}}, loop.span());
    return result;
  }

  /// The body of a loop without conditions around all of it that are the same in each iteration, which go to `outside`.
  static Stmt without_outside(const Stmt& body, const Ref<Var>& loop_var, std::vector<Expr>& outside) {
    const IfThenElse* branch = body.as<IfThenElse>();
    if (!branch || branch->else_case.defined()) return body;
    if (!uses_var(branch->condition, loop_var) && has_value_anywhere(branch->condition)) {
      outside.push_back(branch->condition);
      return without_outside(branch->then_case, loop_var, outside);
    }
    Stmt then_case = without_outside(branch->then_case, loop_var, outside);
    if (then_case == branch->then_case) return body;
    return make<IfThenElse>({branch->condition, then_case, {}}, body.span());
  }

  /// Whether a condition can be asked where it was not: outside of a loop without iterations, or of another condition.
  static bool has_value_anywhere(const Expr& condition) {
    bool total = effect_of(condition) == Effect::kPure && is_of_integers(condition);
    auto divides = [&](const Expr& divisor) { total &= const_int(divisor).value_or(0) != 0; };
    visit(condition, on<FloorDiv, FloorMod, Div, Mod>([&](const auto& e, Visitor& v) { divides(e->b), v.descend(e); }));
    return total;
  }

  Stmt simplify_branch(const IfThenElse& branch, const Stmt& s, Rewriter& r) {
    Expr condition = decide(r(branch.condition));
    if (is_true(condition)) return r(branch.then_case);
    if (is_false(condition)) return branch.else_case.defined() ? r(branch.else_case) : nop();
    Stmt then_case, else_case;
    if (variables_.is_decidable(condition)) {
      auto scope = analyzer_.constraint(condition);
      then_case = r(branch.then_case);
    } else {
      then_case = r(branch.then_case);
    }
    if (branch.else_case.defined()) else_case = r(branch.else_case);
    if (is_nop(then_case) && (!else_case.defined() || is_nop(else_case))) return nop();
    return make<IfThenElse>({condition, then_case, else_case}, s.span());
  }

  std::unordered_set<NodeRef> data_;  ///< variables
};

}  // namespace

PassResult simplify_indices(const Ref<PrimFunc>& func, PassContext&) {
  return with_body(func, Simplifier(*func).run(func->body));
}

}  // namespace tilewright::lower
