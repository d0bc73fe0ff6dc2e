#include "ir/reduction_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/structural.h"
#include "ir/traverse.h"

namespace tilewright {
namespace {

bool is_of_bits(Intrinsic intrinsic) {
  return intrinsic == Intrinsic::k_bitwise_and || intrinsic == Intrinsic::k_bitwise_or ||
         intrinsic == Intrinsic::k_bitwise_xor;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether the type has infinity. In formats without it, such as float8_e4m3fn, the largest number is used instead.
bool has_infinity(DataType type) { return type.is_float() && std::isinf(round_float(type.element(), kInfinity)); }

bool loads_from(const Expr& e, const Ref<Var>& data) {
  return any_node(e, [&](const Ref<BufferLoad>& load) { return load->buffer->data == data; });
}

}  // namespace

std::optional<ReductionStep> ReductionStep::of(const BufferStore& store) {
  if (store.predicate.defined()) return {};
  auto is_element = [&](const Expr& e) {
    const BufferLoad* load = e.as<BufferLoad>();
    return load && load->buffer == store.buffer && !load->predicate.defined() &&
           same_exprs(load->indices, store.indices);
  };
  const Expr& value = store.value;
  auto beside = [&](Intrinsic bits, const Expr& a, const Expr& b) -> std::optional<ReductionStep> {
    bool left = is_element(a), right = !value.is<Sub>() && is_element(b);
    if ((!left && !right) || loads_from(left ? b : a, store.buffer->data)) return {};
    return left ? ReductionStep(value.kind(), bits, a, b, true) : ReductionStep(value.kind(), bits, b, a, false);
  };
  auto of_two = [&](const auto* n) { return beside(Intrinsic::kUnknown, n->a, n->b); };
  if (const Add* n = value.as<Add>()) return of_two(n);
  if (const Sub* n = value.as<Sub>()) return of_two(n);
  if (const Mul* n = value.as<Mul>()) return of_two(n);
  if (const Min* n = value.as<Min>()) return of_two(n);
  if (const Max* n = value.as<Max>()) return of_two(n);
  if (const And* n = value.as<And>()) return of_two(n);
  if (const Or* n = value.as<Or>()) return of_two(n);
  const Call* call = value.as<Call>();
  if (!call || !is_of_bits(intrinsic_of(*call))) return {};
  return beside(intrinsic_of(*call), call->arg(0), call->arg(1));
}

int ReductionStep::operation() const {
  if (kind_ == Kind::kCall) return 1 + kNumKinds + static_cast<int>(bits_);
  return 1 + static_cast<int>(kind_ == Kind::kSub ? Kind::kAdd : kind_);
}

Expr ReductionStep::step(const Expr& element, const Expr& operand) const {
  if (kind_ == Kind::kSub) return binary(Kind::kSub, element, operand);
  return combine(element, operand);
}

Expr ReductionStep::combine(const Expr& a, const Expr& b) const {
  if (kind_ == Kind::kCall) return call(bits_, {a, b});
  // Steps that subtract from partial results are combined by addition.
  return binary(kind_ == Kind::kSub ? Kind::kAdd : kind_, a, b);
}

Expr ReductionStep::identity() const {
  DataType type = operand_.dtype();
  switch (kind_) {
    case Kind::kMul:
      return one(type);
    case Kind::kMin:
      return has_infinity(type) ? constant(type, kInfinity) : max_value(type);
    case Kind::kMax:
      return has_infinity(type) ? constant(type, -kInfinity) : min_value(type);
    case Kind::kAnd:
      return bool_imm(true);
    case Kind::kOr:
      return bool_imm(false);
    case Kind::kCall:
      if (bits_ != Intrinsic::k_bitwise_and) return zero(type);
      return type.is_uint() ? max_value(type) : constant(type, int64_t{-1});
    default:
      // 0.0 + -0.0 is 0.0.
      return type.is_float() ? constant(type, -0.0) : zero(type);
  }
}

bool ReductionStep::may_restart_from(const Expr& start) const {
  Expr value = start;
  while (const Cast* converted = value.as<Cast>()) value = Expr(converted->value);
  auto integer = const_int(value);
  auto real = const_float(value);
  if (kind_ == Kind::kMul) return integer == 1 || real == 1.0;
  bool adds = kind_ == Kind::kAdd || kind_ == Kind::kSub || bits_ == Intrinsic::k_bitwise_xor;
  return adds ? integer == 0 || real == 0.0 : integer || real;
}

bool ReductionStep::is_exact() const {
  return !operand_.dtype().is_float() || kind_ == Kind::kMin || kind_ == Kind::kMax;
}

}  // namespace tilewright
