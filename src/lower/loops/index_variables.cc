#include "lower/loops/index_variables.h"

#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/pass.h"

namespace tilewright::lower {

IndexVariables::IndexVariables(const PrimFunc& func, arith::Analyzer& analyzer) : analyzer_(analyzer) {
  auto size = [&](const Ref<Var>& v) { known_.insert(v), open_.insert(v); };
  for (const auto& [param, buffer] : func.buffer_map) {
    for (const Expr& extent : buffer->shape) for_each_free_var(extent, size);
    for (const Expr& stride : buffer->strides) for_each_free_var(stride, size);
    if (buffer->elem_offset.defined()) for_each_free_var(buffer->elem_offset, size);
  }
}

void IndexVariables::enter(const For& loop) {
  auto bound = [&](const Ref<Var>& v) {
    if (!known_.contains(v)) bounds_.insert(v);
  };
  for_each_free_var(loop.min, bound);
  for_each_free_var(loop.extent, bound);
  known_.insert(loop.loop_var);
  auto open = [&](const Expr& e) {
    return effect_of(e) != Effect::kPure || uses_any_var(e, [&](const Ref<Var>& part) { return is_open(part); });
  };
  if (open(loop.min) || open(loop.extent)) open_.insert(loop.loop_var);
}

void IndexVariables::leave(const For& loop) {
  auto bound = [&](const Ref<Var>& v) {
    if (auto it = bounds_.find(v); it != bounds_.end()) bounds_.erase(it);
  };
  for_each_free_var(loop.min, bound);
  for_each_free_var(loop.extent, bound);
}

bool IndexVariables::note(const Ref<Var>& v, const Expr& value) {
  bool made_of_known = effect_of(value) == Effect::kPure && !may_wrap(value) &&
                       !uses_any_var(value, [&](const Ref<Var>& part) { return !is_known(part); });
  if (!made_of_known) return false;
  known_.insert(v);
  if (uses_any_var(value, [&](const Ref<Var>& part) { return is_open(part); })) open_.insert(v);
  return true;
}

bool is_of_integers(const Expr& condition) {
  return !has_node<FloatImm>(condition) &&
         !uses_any_var(condition, [](const Ref<Var>& v) { return !v.dtype().is_integral(); });
}

bool IndexVariables::is_decidable(const Expr& condition) {
  if (effect_of(condition) != Effect::kPure) return false;
  return is_of_integers(condition) && !may_wrap(condition);
}

bool IndexVariables::may_wrap(const Expr& e) {
  bool wraps = false;
  auto look = [&](const auto& node) { wraps |= leaves_type(node); };
  visit(e, on<Add, Sub, Mul, Div, FloorDiv, Call>(look));
  return wraps;
}

bool IndexVariables::leaves_type(const Expr& e) {
  if (!e.dtype().is_integral()) return false;
  bool sized = false, foreign = false;
  uses_any_var(e, [&](const Ref<Var>& v) {
    sized |= is_open(v);
    foreign |= !is_known(v);
    return false;
  });
  if (sized && !foreign) return false;
  // The analyzer assumes that index arithmetic does not overflow, so its bound of the whole expression proves nothing
  // here.
  const arith::ConstIntBound type = arith::ConstIntBound::of_type(e.dtype());
  auto leaves = [&](__int128 value) { return value < type.min_value || value > type.max_value; };
  if (const Call* call = e.as<Call>()) {
    auto intrinsic = intrinsic_of(*call);
    if (intrinsic == Intrinsic::k_shift_left) {
      auto bits = const_int(call->arg(1));
      if (!bits || *bits < 0 || *bits > 62) return true;
      const arith::ConstIntBound a = analyzer_.const_int_bound(call->arg(0));
      const __int128 factor = __int128{1} << *bits;
      return leaves(a.min_value * factor) || leaves(a.max_value * factor);
    }
    return intrinsic == Intrinsic::k_fabs && leaves(-__int128{analyzer_.const_int_bound(call->arg(0)).min_value});
  }
  BinaryOperands operands = binary_operands(e);
  const arith::ConstIntBound a = analyzer_.const_int_bound(*operands.a), b = analyzer_.const_int_bound(*operands.b);
  if (e.is<Div>() || e.is<FloorDiv>()) return b.min_value <= -1 && b.max_value >= -1 && leaves(-__int128{a.min_value});
  auto ends = [&](__int128 x, __int128 y) { return leaves(e.is<Add>() ? x + y : e.is<Sub>() ? x - y : x * y); };
  return ends(a.min_value, b.min_value) || ends(a.min_value, b.max_value) || ends(a.max_value, b.min_value) ||
         ends(a.max_value, b.max_value);
}

LoopContext::LoopContext(const PrimFunc& func) : variables_(func, analyzer_) { assume_sizes(func, analyzer_); }

}  // namespace tilewright::lower
