#include "lower/loops/cut_loops.h"

#include "lower/pass.h"
#include "lower/vector/vector_math.h"

namespace tilewright::lower {

Stmt strip(const Ref<For>& loop, const Stmt& body, const Expr& first, const Ref<Var>& lane, int64_t width,
           ForKind kind) {
  const Expr offset = first + lane;
  Stmt inner = substitute_folding(body, loop->loop_var, loop->min + offset);
  auto extent = const_int(loop->extent), begin = const_int(first);
  // Without a constant `first`, strips begin at multiples of the width.
  const bool is_full = extent && (begin ? *begin + width <= *extent : *extent % width == 0);
  if (!is_full) inner = make<IfThenElse>({lt(offset, loop->extent), inner, {}});
  if (width == 1) return substitute_folding(inner, lane, zero(lane.dtype()));
  const DataType type = lane.dtype();
  For lanes{lane, zero(type), int_imm(type, width), kind, {}, {}, inner};
  return make(std::move(lanes), loop.span());
}

Stmt strips(const Ref<For>& loop, const Stmt& body, const Ref<Var>& lane, int64_t width, ForKind kind, ForKind outer) {
  const DataType type = loop->loop_var.dtype();
  For copy = *loop;
  copy.loop_var = var(loop->loop_var->name_hint + "_0", type);
  copy.min = zero(type);
  copy.extent = floordiv(loop->extent + (width - 1), constant(type, width));
  copy.kind = outer;
  copy.body = strip(loop, body, copy.loop_var * width, lane, width, kind);
  return make(std::move(copy), loop.span());
}

Ref<For> remainder(const Ref<For>& loop, const Expr& done) {
  For copy = *loop;
  copy.loop_var = make<Var>(*loop->loop_var);
  copy.min = zero(loop->loop_var.dtype());
  copy.extent = loop->extent - done;
  copy.body = renew_defs(substitute_folding(loop->body, loop->loop_var, loop->min + done + copy.loop_var));
  return make(std::move(copy), loop.span());
}

Ref<For> part_of(const Ref<For>& loop, const Expr& begin, const Expr& extent) {
  For copy = *loop;
  copy.min = begin;
  copy.extent = extent;
  return make(std::move(copy), loop.span());
}

Stmt first_iteration(const For& loop) {
  return substitute_folding(loop.body, loop.loop_var, cast(loop.loop_var.dtype(), loop.min));
}

std::optional<bool> partition_hint(const For& loop) {
  const IntImm* hint = loop.annotations.get("pragma_loop_partition_hint").as<IntImm>();
  return hint ? std::optional(hint->value != 0) : std::nullopt;
}

Stmt LoopCutter::branch(const Ref<For>& loop, const Expr& low, const Expr& high, const Stmt& middle, const Stmt& edges,
                        Rewriter& r) {
  Expr test = bool_imm(true);
  if (low.defined()) test = logical_and(test, ge(loop->loop_var, low));
  if (high.defined()) test = logical_and(test, lt(loop->loop_var, high));
  auto run = [&](const Stmt& body, const Expr& known) {
    auto scope = analyzer_.constraint(known);
    return r(body);
  };
  For copy = *loop;
  copy.body = inside(*loop, [&] {
    Stmt full = run(middle, test), rest = run(edges, logical_not(test));
    return make<IfThenElse>({test, full, is_nop(rest) ? Stmt() : rest});
  });
  return make(std::move(copy), loop.span());
}

}  // namespace tilewright::lower
