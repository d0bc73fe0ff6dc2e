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
  inputs_.emplace_back(loop_var, range(min, extent));
  analyzer_.bind(loop_var, range(min, extent));
}

void Rebind::rebind_axes(BlockRealize& realize) {
  bool changed = false, divides = false;
  for (Expr& value : realize.iter_values) {
    Expr after = substitute(value, map_);
    if (after == value) continue;
    changed = true;
    value = std::move(after);
    visit(value, [&](const Ref<FloorDiv>&) { divides = true; }, [&](const Ref<FloorMod>&) { divides = true; });
  }
  if (!changed) return;
  if (!divides) {
    for (Expr& value : realize.iter_values) value = analyzer_.simplify(value);
    return;
  }
  // Term by term, (a * 7 + b) % 6 is as well (a + b) % 6, which hides that its neighbor is (a * 7 + b) // 6. Seen as
  // digits of one iterator the two stay what they are.
  arith::IterMapResult map = arith::detect_iter_map(realize.iter_values, inputs_, realize.predicate,
                                                    arith::IterMapLevel::kSurjective, analyzer_);
  if (!map.ok()) return;
  for (size_t i = 0; i < map.indices.size(); ++i) {
    realize.iter_values[i] = arith::normalize_iter_map_to_expr(map.indices[i], analyzer_);
  }
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
        copy.predicate = substitute(copy.predicate, map_);
        if (condition.defined()) copy.predicate = logical_and(copy.predicate, condition);
        rebind_axes(copy);
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
