// Guard every access by an assertion, if the option check_bounds is set.
//
//   Before                               After
//   for i in range(n):                   for i in range(n):
//     with T.block("B"):                   with T.block("B"):
//       B[I[i]] = A[i]                       assert 0 <= i and i < 8, "block 'B' reads 'I' ..."
//                                            assert 0 <= i and i < 8, "block 'B' reads 'A' ..."
//                                            assert 0 <= I[i] and I[i] < 8, "block 'B' writes 'B' at index I[i] = ..."
//                                            B[I[i]] = A[i]
//
// An access under if_then_else, or behind `and` and `or`, is checked where it happens. What the loops around an access
// prove needs no check. Of masked vectors each lane is checked that the mask lets through. Assertions have no vector
// form: vectorized loops that keep one run their iterations in order.
//
// Proofs rely on what the root block declares of the parameters (T.assume_buffer_domain). So the declarations are
// checked first (analysis/validator.h), for each call. Kernels of a device have their arrays there, where the host
// cannot read them: no proof relies on a declaration there.
//
// Needs      blocks without axes, buffers in the shapes that the user gave them
// Ensures    no load or store leaves its buffer: the kernel returns an error that names block, buffer, index and bound
// Placement  before compact_buffers, which gives buffers other shapes; after the passes that judge blocks by what they
//            hold. Only with LowerOptions::check_bounds
#include "analysis/accesses.h"
#include "analysis/brief.h"
#include "analysis/validator.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

using analysis::Access;
using analysis::Surrounding;

struct Check {
  Expr holds;
  std::string access, dimension, range;  ///< parts of the message; the value is behind the access
  Expr value;                            ///< null: of a vector
};

class Guard {
 public:
  Guard(const PrimFunc& func, bool relies_on_declarations) {
    if (relies_on_declarations) assume_sizes(func, analyzer_);
    for (const auto& [param, buffer] : func.buffer_map) {
      for (const Expr& extent : buffer->shape) {
        if (extent.is<Var>()) analyzer_.assume(ge(extent, 0));
      }
    }
  }

  Stmt run(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
          std::string outer = std::exchange(block_, block->name_hint);
          Ref<Block> inner = r.descend(block);
          block_ = outer;
          return inner;
        },
        [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
          const std::vector<Check> checks = of({realize->predicate});
          const auto holds = known(realize->predicate);
          return behind(checks, Stmt(r.descend(realize)));
        },
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          std::vector<Check> checks = of({loop->min, loop->extent});
          analyzer_.bind(loop->loop_var, range(loop->min, loop->extent));
          return behind(checks, Stmt(r.descend(loop)));
        },
        [&](const Ref<While>& loop, Rewriter& r) -> Stmt {
          // The condition is read before each iteration: before the first one, and at the end of every one.
          std::vector<Check> checks = of({loop->condition});
          While copy = *r.descend(loop);
          if (!checks.empty()) copy.body = seq({copy.body, behind(checks, nop())});
          return behind(checks, make(std::move(copy), loop.span()));
        },
        [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt {
          const std::vector<Check> checks = of({branch->condition});
          IfThenElse copy = *branch;
          {
            const auto holds = known(branch->condition);
            copy.then_case = r(branch->then_case);
          }
          if (copy.else_case.defined()) {
            const auto holds = known(logical_not(branch->condition));
            copy.else_case = r(branch->else_case);
          }
          return behind(checks, make(std::move(copy), branch.span()));
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt { return behind(of({let->value}), Stmt(r.descend(let))); },
        [&](const Ref<AssertStmt>& assertion, Rewriter& r) -> Stmt {
          return behind(of({assertion->condition}), Stmt(r.descend(assertion)));
        },
        [&](const Ref<Evaluate>& evaluate, Rewriter&) -> Stmt { return behind(of({evaluate->value}), evaluate); },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return behind(of({store}), store); });
  }

 private:
  /// Assumes a condition while the code that it guards is checked. Assumes nothing if that code may change what the
  /// condition reads.
  arith::Analyzer::Scope known(const Expr& condition) {
    const bool says = condition.defined() && condition.dtype().is_scalar() && effect_of(condition) == Effect::kPure;
    return analyzer_.constraint(says ? condition : bool_imm(true));
  }

  /// Checks of all accesses in these expressions or this store, in the order in which they happen.
  std::vector<Check> of(const std::vector<NodeRef>& roots) {
    std::vector<Check> checks;
    std::vector<Pending> open;
    auto note = [&](const Access& access) {
      const bool element = access.form == Access::Form::kElement || access.is_atomic;
      size_t inner = access.writes ? 0 : accesses_in(access);
      open.push_back({inner, inner, element ? of_access(access) : std::vector<Check>{}});
      while (!open.empty() && open.back().waits_for == 0) {
        Pending done = std::move(open.back());
        open.pop_back();
        append_range(checks, done.checks);
        if (!open.empty()) open.back().waits_for -= done.inner + 1;
      }
    };
    for (const NodeRef& root : roots) analysis::for_each_access(root, analysis::Nested::kDeclared, note);
    return checks;
  }

  /// The walk comes to a load before it comes to the loads in its indices, which happen first.
  struct Pending {
    size_t inner, waits_for;
    std::vector<Check> checks;
  };
  static size_t accesses_in(const Access& access) {
    size_t count = 0;
    auto add = [&](const Access&) { ++count; };
    if (const std::vector<Expr>* indices = access.indices()) {
      for (const Expr& index : *indices) analysis::for_each_access(index, analysis::Nested::kDeclared, add);
    }
    if (access.mask().defined()) analysis::for_each_access(access.mask(), analysis::Nested::kDeclared, add);
    return count;
  }

  std::vector<Check> of_access(const Access& access) {
    std::vector<Check> checks;
    const std::vector<Expr>& indices = *access.indices();
    Expr here = bool_imm(true);
    for (const Surrounding& s : access.around) {
      if (s.kind == Surrounding::Kind::kCondition && s.condition.dtype().is_scalar() &&
          effect_of(s.condition) == Effect::kPure) {
        here = logical_and(here, s.condition);
      }
    }
    const auto holds_here = known(here);
    for (size_t d : indices_of(indices)) {
      Expr inside = bool_imm(true);
      for (const auto& [index, masked] : ends_of(indices[d], access.mask())) {
        Expr low = ge(index, 0);
        // Compare in the wider type: the low bits of a 64-bit extent mean nothing.
        const Expr& extent = access.named->shape[d];
        const bool is_wider = extent.dtype().bits > index.dtype().bits;
        Expr high = is_wider ? lt(cast(extent.dtype(), index), extent) : lt(index, cast(index.dtype(), extent));
        Expr both = analyzer_.can_prove(low) ? bool_imm(true) : low;
        if (!analyzer_.can_prove(high)) both = logical_and(both, high);
        if (!is_true(both)) inside = logical_and(inside, masked.defined() ? logical_or(masked, both) : both);
      }
      if (is_true(inside)) continue;
      Expr holds = where_it_happens(inside, access.around);
      Expr value = indices[d].dtype().is_scalar() ? where_it_happens(indices[d], access.around, true) : Expr();
      checks.push_back(
          {holds,
           (block_.empty() ? "the program" : "block '" + block_ + "'") + (access.writes ? " writes '" : " reads '") +
               access.named->name + "' at index " + analysis::brief(indices[d]),
           " of dimension " + std::to_string(d), "[0, " + analysis::brief(access.named->shape[d]) + ")", value});
    }
    return checks;
  }

  /// The indices to compare, and for each what masks it out, if there is a mask: the first and the last element of a
  /// ramp, else each lane.
  static std::vector<std::pair<Expr, Expr>> ends_of(const Expr& index, const Expr& mask) {
    auto lane_of = [](const Expr& vector, int lane) -> Expr { return make<Shuffle>({{vector}, {i32(lane)}}); };
    const Ramp* ramp = index.as<Ramp>();
    auto at = [&](int lane) -> Expr {
      if (index.dtype().is_scalar()) return index;
      return ramp ? ramp->base + ramp->stride * i32(lane) : lane_of(index, lane);
    };
    std::vector<std::pair<Expr, Expr>> each;
    if (mask.defined()) {
      int lanes = mask.dtype().scalable ? 0 : mask.dtype().lanes;
      for (int lane = 0; lane < lanes; ++lane) {
        each.emplace_back(at(lane), logical_not(mask.dtype().is_scalar() ? mask : lane_of(mask, lane)));
      }
      return each;
    }
    if (index.dtype().is_scalar()) return {{index, Expr()}};
    if (ramp) {
      Expr last = ramp->base + ramp->stride * cast(ramp->stride.dtype(), ramp->lanes - 1);
      return {{ramp->base, Expr()}, {last, Expr()}};
    }
    for (int lane = 0; lane < index.dtype().lanes; ++lane) each.emplace_back(at(lane), Expr());
    return each;
  }

  /// inside, unless a condition in the same expression keeps the access from happening.
  static Expr where_it_happens(Expr inside, analysis::Surroundings around, bool is_value = false) {
    for (const Surrounding& s : reversed(around)) {
      if (s.kind == Surrounding::Kind::kCondition && !is_value) inside = logical_or(logical_not(s.condition), inside);
      if (s.kind == Surrounding::Kind::kLet) inside = substitute(inside, VarMap{{s.var, s.node.as<Let>()->value}});
    }
    return inside;
  }

  Stmt behind(const std::vector<Check>& checks, Stmt stmt) {
    for (const auto& [holds, access, dimension, range, value] : reversed(checks)) {
      SpanId span = stmt.span();
      const std::string after = dimension + ", which is not in " + range;
      Expr message = string_imm(access + after);
      if (value.defined()) {
        message = call(DataType::handle(), "tir.tvm_tuple",
                       {string_imm(access + " = "), cast(DataType::int_(64), value), string_imm(after)});
      }
      stmt = make<AssertStmt>({holds, message, stmt}, span);
    }
    return stmt;
  }

  arith::Analyzer analyzer_;
  std::string block_;
};

/// The body behind the checks of what its root block declares.
Stmt behind_declarations(const PrimFunc& func, const Stmt& body) {
  analysis::DeclaredChecks declared = analysis::declared_checks(func);
  if (declared.checks.empty()) return body;
  BlockRealize realize = *body.as<BlockRealize>();
  Block root = *realize.block;
  declared.checks.push_back(root.body);
  root.body = seq(std::move(declared.checks));
  for (Def<Buffer>& buffer : declared.allocated) root.alloc_buffers.push_back(std::move(buffer));
  realize.block = make(std::move(root), realize.block.span());
  return make(std::move(realize), body.span());
}

}  // namespace

PassResult check_bounds(const Ref<PrimFunc>& func, PassContext& context) {
  if (!context.check_bounds) return func;
  const bool is_on_host = !context.target.is_in(TargetSet::kGpu);
  Guard guard(*func, is_on_host);
  const Stmt guarded = guard.run(func->body);
  return with_body(func, is_on_host ? behind_declarations(*func, guarded) : guarded);
}

}  // namespace tilewright::lower
