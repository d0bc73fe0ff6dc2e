#include "schedule/rebind.h"

#include "analysis/free_vars.h"
#include "arith/linear.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Rebind::Rebind(const analysis::Tree& tree, int at, bool preserve_unit_iters)
    : preserve_unit_iters_(preserve_unit_iters) {
  const std::vector<int> around = tree.loops_above(at);
  inputs_.reserve(around.size() + 4);
  for (int loop : around) {
    const For& outer = tree.for_at(loop);
    bind(outer.loop_var, outer.min, outer.extent);
  }
}

void Rebind::bind(const Ref<Var>& loop_var, const Expr& min, const Expr& extent) {
  if (preserve_unit_iters_ && is_const_int(extent, 1)) return;
  inputs_.push_back({loop_var, min, extent});
  if (is_const_int(extent, 1)) fixed_.push_back(loop_var);
}

arith::Analyzer& Rebind::analyzer() {
  for (; known_ < inputs_.size(); ++known_) {
    const Input& input = inputs_[known_];
    analyzer_.bind(input.loop_var, input.min, input.extent);
  }
  return analyzer_;
}

bool Rebind::is_fixed(const Expr& e) const {
  return !fixed_.empty() && uses_any_var(e, [&](const Ref<Var>& v) { return is_contained(fixed_, v); });
}

/// Plain sums are simplified without ranges.
Expr Rebind::simplified(const Expr& e) {
  Expr sum = is_fixed(e) ? Expr() : arith::simplified_sum(e);
  return sum.defined() ? sum : analyzer().simplify(e);
}

namespace {

/// A variable, or a digit of one: then its terms keep apart what they are digits of.
bool is_digit(const Expr& e) {
  const FloorDiv* quotient = e.as<FloorDiv>();
  const FloorMod* remainder = e.as<FloorMod>();
  if (quotient) return quotient->b.is<IntImm>() && is_digit(quotient->a);
  if (remainder) return remainder->b.is<IntImm>() && is_digit(remainder->a);
  return e.is<Var>();
}

}  // namespace

void Rebind::rebind_axes(BlockRealize& realize) {
  std::vector<bool> changed(realize.iter_values.size());
  bool sums_divided = false;
  for (size_t i : indices_of(changed)) {
    Expr& value = realize.iter_values[i];
    Expr after = substitute(value, map_);
    if (after == value) continue;
    changed[i] = true;
    value = std::move(after);
    visit(value, on<FloorDiv, FloorMod>([&](const auto& part, Visitor&) { sums_divided |= !is_digit(part); }));
  }
  if (!is_contained(changed, true)) return;
  if (!sums_divided) {
    for (size_t i : indices_of(changed)) {
      if (changed[i]) realize.iter_values[i] = simplified(realize.iter_values[i]);
    }
    return;
  }
  // Term by term, (a * 7 + b) % 6 is as well (a + b) % 6, which hides that its neighbor is (a * 7 + b) // 6. Seen as
  // digits of one iterator the two stay what they are.
  arith::IterDomains domains;
  for (const Input& input : inputs_) domains.emplace_back(input.loop_var, range(input.min, input.extent));
  arith::IterMapResult map = arith::detect_iter_map(realize.iter_values, domains, realize.predicate,
                                                    arith::IterMapLevel::kSurjective, analyzer());
  if (!map.ok()) return;
  for (size_t i : indices_of(map.indices)) {
    // Casts between index types are seen through: the axis keeps its own.
    Expr& value = realize.iter_values[i];
    value = cast(value.dtype(), arith::normalize_iter_map_to_expr(map.indices[i], analyzer()));
  }
}

Stmt Rebind::operator()(const Stmt& body, const Expr& condition) {
  auto changed = [&](const Expr& e) {
    Expr after = substitute(e, map_);
    return after == e ? e : simplified(after);
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
        return make(std::move(copy), loop.span());
      },
      [&](const Ref<BlockRealize>& realize, Rewriter&) -> Stmt {
        BlockRealize copy = *realize;
        copy.predicate = substitute(copy.predicate, map_);
        if (condition.defined()) {
          // A predicate that reads data is evaluated only if the instance runs.
          const bool reads = effect_of(copy.predicate) != Effect::kPure;
          copy.predicate = reads ? logical_and(condition, copy.predicate) : logical_and(copy.predicate, condition);
        }
        rebind_axes(copy);
        const auto& outside = analysis::FreeVars::of(copy.block);
        for (const auto& [from, to] : map_) {
          if (!outside.contains(from)) continue;
          copy.block = substitute(copy.block, map_);
          break;
        }
        return make(std::move(copy), realize.span());
      },
      [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(map_, v, v); });
}

}  // namespace tilewright::schedule
