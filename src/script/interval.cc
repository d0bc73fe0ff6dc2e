#include "script/interval.h"

#include "arith/analyzer.h"
#include "arith/fingerprint.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "support/diagnostic.h"

namespace tilewright::script {
namespace {

bool is_vscale_multiple(const Expr& e) {
  if (is_call_to(e, Intrinsic::k_vscale)) return true;
  const Mul* mul = e.as<Mul>();
  return mul && ((mul->a.is<IntImm>() && is_call_to(mul->b, Intrinsic::k_vscale)) ||
                 (mul->b.is<IntImm>() && is_call_to(mul->a, Intrinsic::k_vscale)));
}

/// lanes with lanes * step == extent.
Expr divide_lanes(const Expr& extent, const Expr& step) {
  if (!step.defined()) return extent;
  auto stride = const_int(step);
  if (!stride || *stride <= 0) return {};
  if (*stride == 1) return extent;
  if (auto length = const_int(extent)) {
    if (*length % *stride == 0) return int_imm(extent.dtype(), *length / *stride);
    return {};
  }
  const Mul* mul = extent.as<Mul>();
  return mul && is_const_int(mul->b, *stride) ? mul->a : Expr();
}

}  // namespace

Expr as_index(const Expr& e) {
  const DataType type = e.dtype();
  if (arith::is_index(type)) return e;
  auto number = const_int(e);
  if (number && *number < 0 && type.is_uint()) {
    throw Exception(script_error("builder/index-range",
                                 std::to_string(static_cast<uint64_t>(*number)) + " is beyond the range of int64",
                                 "loops and axes run over int32 or int64"));
  }
  const bool is_small = type.bits < 32 || (number && *number >= 0 && *number <= INT32_MAX);
  return cast(DataType::int_(is_small ? 32 : 64), e);
}

Expr extent_of(const Expr& start, const Expr& stop) {
  if (is_zero_literal(start)) {
    return start.dtype().bits <= stop.dtype().bits ? stop : cast(start.dtype(), stop);
  }
  if (const Add* add = stop.as<Add>()) {
    if (same_expr(add->a, start)) return add->b;
    const IntImm *c = add->b.as<IntImm>(), *d = start.as<Add>() ? start.as<Add>()->b.as<IntImm>() : nullptr;
    // (x + d) .. (x + c)
    if (c && d && c->value >= d->value && same_expr(add->a, start.as<Add>()->a)) {
      return int_imm(c->dtype, c->value - d->value);
    }
  }
  if (same_expr(start, stop)) return zero(start.dtype());
  return arith::Analyzer().simplify(stop - start);
}

Expr stop_of(const Expr& min, const Expr& extent) {
  auto means_extent = [&](const Expr& stop) { return same_expr(extent_of(min, stop), extent); };
  if (is_zero_literal(min)) return extent;
  const Sub* sub = extent.as<Sub>();
  if (sub && same_expr(sub->b, min) && means_extent(sub->a)) return sub->a;
  Expr stop = min + extent;
  if (means_extent(stop)) return stop;
  return make<Add>({min, extent});
}

Expr ramp_of_slice(const Expr& start, const Expr& stop, const Expr& step) {
  Expr lanes = divide_lanes(extent_of(start, stop), step);
  if (!lanes.defined()) return {};
  Expr stride = step.defined() ? step : one(start.dtype());
  if (stride.dtype() != start.dtype()) stride = cast(start.dtype(), stride);
  if (auto count = const_int(lanes)) {
    if (*count < 1 || *count > 65535) return {};
    return *count == 1 ? start : Expr(make<Ramp>({start, stride, i32(*count)}));
  }
  return is_vscale_multiple(lanes) ? Expr(make<Ramp>({start, stride, lanes})) : Expr();
}

}  // namespace tilewright::script
