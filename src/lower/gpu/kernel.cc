#include "lower/gpu/kernel.h"

#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::lower {

Stmt barrier(SpanId span) {
  return make<Evaluate>({call(DataType::int_(32), "tir.tvm_storage_sync", {string_imm("shared")})}, span);
}

bool is_barrier(const Stmt& s) {
  const Evaluate* evaluate = s.as<Evaluate>();
  return evaluate && is_call_to(evaluate->value, Intrinsic::k_tvm_storage_sync);
}

bool has_barrier(const Stmt& s) {
  return any_node(s, [](const Ref<Evaluate>& evaluate) { return is_barrier(evaluate); });
}

Stmt bound_loop(const Ref<Var>& v, const Expr& extent, const std::string& tag, Stmt body, SpanId span) {
  For loop{v, zero(v.dtype()), cast(v.dtype(), extent), ForKind::kThreadBinding, {}, {}, std::move(body)};
  loop.thread_binding =
      make<IterVar>({.dom = {}, .var = var(tag, v.dtype()), .iter_type = IterType::kThreadIndex, .thread_tag = tag});
  return make(std::move(loop), span);
}

bool uses_buffer(const NodeRef& root, const Ref<Buffer>& buffer) {
  return any_node(root, [&](const Ref<Buffer>& used) { return used == buffer; });
}

KernelLoops KernelLoops::of(Stmt kernel) {
  KernelLoops found{{}, std::move(kernel)};
  for (;;) {
    const For* loop = found.body.as<For>();
    if (!loop || !is_bound(*loop)) return found;
    found.loops.push_back(found.body.cast<For>());
    found.body = Stmt(loop->body);
  }
}

Stmt KernelLoops::around(Stmt inner) const {
  for (const Ref<For>& loop : reversed(loops)) inner = with_body(loop, std::move(inner));
  return inner;
}

bool KernelLoops::has_thread(const NodeRef& variable) const {
  return any_of(loops, [&](const Ref<For>& loop) {
    auto axis = analysis::thread_axis(*loop);
    return axis && axis->in_team() && loop->loop_var == variable;
  });
}

}  // namespace tilewright::lower
