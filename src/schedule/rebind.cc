#include "schedule/rebind.h"

#include "analysis/free_vars.h"
#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::schedule {

Rebind::Rebind(const analysis::Tree& tree, int at, bool preserve_unit_iters)
    : preserve_unit_iters_(preserve_unit_iters) {
  for (int loop : tree.loops_above(at)) {
    const For& outer = tree.for_at(loop);
    bind(outer.loop_var, outer.min, outer.extent);
  }
}

void Rebind::bind(const Ref<Var>& loop_var, const Expr& min, const Expr& extent) {
  if (preserve_unit_iters_ && is_const_int(extent, 1)) return;
  analyzer_.bind(loop_var, range(min, extent));
}

Stmt Rebind::operator()(const Stmt& body, const Expr& condition) {
  auto changed = [&](const Expr& e) {
    Expr after = substitute(e, map_);
    return after == e ? e : analyzer_.simplify(after);
  };
  return rewrite(
      body,
      [&](const Ref<For>& loop, Rewriter& walk) -> Stmt {
        Expr min = changed(loop->min), extent = changed(loop->extent);
        bind(loop->loop_var, min, extent);
        Stmt inner = walk(loop->body);
        if (min == loop->min && extent == loop->extent && inner == loop->body) return loop;
        For copy = *loop;
        copy.min = std::move(min);
        copy.extent = std::move(extent);
        copy.body = std::move(inner);
        return make<For>(std::move(copy), loop.span());
      },
      [&](const Ref<BlockRealize>& realize, Rewriter&) -> Stmt {
        BlockRealize copy = *realize;
        for (Expr& value : copy.iter_values) value = changed(value);
        copy.predicate = substitute(copy.predicate, map_);
        if (condition.defined()) copy.predicate = logical_and(copy.predicate, condition);
        const auto& outside = analysis::FreeVars::of(copy.block);
        for (const auto& [from, to] : map_) {
          if (!outside.contains(from)) continue;
          copy.block = substitute(copy.block, map_);
          break;
        }
        return make<BlockRealize>(std::move(copy), realize.span());
      },
      [&](const Ref<Var>& v, Rewriter&) -> Expr {
        auto it = map_.find(v);
        return it == map_.end() ? Expr(v) : it->second;
      });
}

}  // namespace tilewright::schedule
