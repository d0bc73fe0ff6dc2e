// Quotients that are rounded up. For all integers a and b other than 0
//
//   ceil(a / b) = a // b + (a % b != 0)          a remainder of floor division has the sign of b
//               = (a + b - 1) // b               where b > 0; the sum has to stay inside the type
//
// The second form is the one that people know from loops over tiles. Of values it is made only where the types of the
// operands show that the sum fits; of sizes always (ir/ceildiv.h).
#include "ir/ceildiv.h"

#include <algorithm>
#include <optional>

#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/op.h"
#include "ir/scalable.h"
#include "ir/structural.h"

namespace tilewright {
namespace {

/// Range of values of an expression that follows from its form alone.
struct Reach {
  __int128 low, high;
};

Reach of_type(DataType type) {
  if (type.is_uint()) return {0, (__int128{1} << type.bits) - 1};
  return {int_min(type), int_max(type)};
}

bool is_within(const Reach& inner, const Reach& outer) { return outer.low <= inner.low && inner.high <= outer.high; }

/// Nested sums of this depth are looked into.
constexpr int kDepth = 8;

Reach reach_of(const Expr& e, int depth);

/// The reach of sums and products, unless they may wrap.
Reach reach_of_binary(const Expr& e, int depth) {
  const Reach all = of_type(e.dtype());
  BinaryOperands operands = binary_operands(e);
  const Reach a = reach_of(*operands.a, depth + 1), b = reach_of(*operands.b, depth + 1);
  Reach made = all;
  if (e.is<Add>()) made = {a.low + b.low, a.high + b.high};
  if (e.is<Sub>()) made = {a.low - b.high, a.high - b.low};
  if (e.is<Mul>() && a.low >= 0 && b.low >= 0) made = {a.low * b.low, a.high * b.high};
  if (e.is<Min>()) made = {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (e.is<Max>()) made = {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (e.is<FloorMod>() && b.low > 0) made = {0, b.high - 1};
  if (e.is<FloorDiv>() && b.low > 0 && a.low >= 0) made = {0, a.high / b.low};
  return is_within(made, all) ? made : all;
}

Reach reach_of(const Expr& e, int depth) {
  if (auto number = const_int(e)) {
    if (e.dtype().is_uint() && *number < 0) return {static_cast<uint64_t>(*number), static_cast<uint64_t>(*number)};
    return {*number, *number};
  }
  const Reach all = of_type(e.dtype());
  if (depth > kDepth) return all;
  if (const Cast* cast = e.as<Cast>(); cast && cast->value.dtype().is_integral()) {
    Reach inner = cast->value.dtype().is_bool() ? Reach{0, 1} : reach_of(cast->value, depth + 1);
    return is_within(inner, all) ? inner : all;
  }
  if (const Broadcast* spread = e.as<Broadcast>()) return reach_of(spread->value, depth + 1);
  if (is_call_to(e, Intrinsic::k_vscale)) return {1, kMaxVscale};
  switch (e.kind()) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kFloorMod:
    case Kind::kFloorDiv:
      return reach_of_binary(e, depth);
    default:
      return all;
  }
}

/// Whether a + b - 1 stays inside the type, and b > 0.
bool sum_fits(const Expr& a, const Expr& b) {
  if (!a.dtype().is_integral() || a.dtype().is_bool()) return false;
  const Reach step = reach_of(b, 0);
  return step.low > 0 && reach_of(a, 0).high + step.high - 1 <= of_type(a.dtype()).high;
}

/// x and c of x // c + (x % c != 0) where c > 0 is a number and x is made of variables.
std::optional<std::pair<Expr, Expr>> as_ceildiv(const Expr& e) {
  const Add* sum = e.as<Add>();
  const FloorDiv* quotient = sum ? sum->a.as<FloorDiv>() : nullptr;
  const Cast* cast = sum ? sum->b.as<Cast>() : nullptr;
  const NE* differs = cast ? cast->value.as<NE>() : nullptr;
  const FloorMod* rest = differs ? differs->a.as<FloorMod>() : nullptr;
  if (!quotient || !rest || const_int(differs->b) != 0 || const_int(rest->b).value_or(0) < 1) return std::nullopt;
  bool same = same_expr(quotient->a, rest->a) && same_expr(quotient->b, rest->b);
  bool plain =
      same && quotient->a.dtype().is_int() && quotient->a.dtype().bits >= 32 && effect_of(quotient->a) == Effect::kPure;
  if (!plain) return std::nullopt;
  return std::pair(quotient->a, quotient->b);
}

}  // namespace

Expr ceildiv(Expr a, Expr b) {
  promote(a, b);
  if (sum_fits(a, b)) return floordiv(a + (b - 1), b);
  if (effect_of(a) <= Effect::kReadState && effect_of(b) <= Effect::kReadState) {
    return floordiv(a, b) + cast(a.dtype(), ne(floormod(a, b), zero(a.dtype())));
  }
  // Evaluate operands with effects once.
  Ref<Var> x = var("dividend", a.dtype()), y = var("divisor", b.dtype());
  Expr rounded = floordiv(x, y) + cast(a.dtype(), ne(floormod(x, y), zero(a.dtype())));
  return make<Let>({x, a, make<Let>({y, b, rounded})});
}

Expr size_ceildiv(const Expr& a, const Expr& b) {
  if (const_int(a) && const_int(b)) return ceildiv(a, b);
  return floordiv(a + (b - 1), b);
}

Expr size_text(const Expr& size) {
  if (size.is<IntImm>() || size.is<Var>()) return size;
  if (auto rounded = as_ceildiv(size)) return size_ceildiv(size_text(rounded->first), rounded->second);
  switch (size.kind()) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kMin:
    case Kind::kMax: {
      BinaryOperands operands = binary_operands(size);
      Expr a = size_text(*operands.a), b = size_text(*operands.b);
      return a == *operands.a && b == *operands.b ? size : binary(size.kind(), a, b);
    }
    default:
      return size;
  }
}

Expr exact_extent(const Expr& extent) {
  if (const FloorDiv* quotient = extent.as<FloorDiv>(); quotient && effect_of(extent) <= Effect::kReadState) {
    const Add* sum = quotient->a.as<Add>();
    auto step = const_int(quotient->b), more = sum ? const_int(sum->b) : std::nullopt;
    if (step && more && *step > 1 && *more == *step - 1) return ceildiv(exact_extent(sum->a), quotient->b);
    return extent;
  }
  if (!extent.is<Add>() && !extent.is<Sub>() && !extent.is<Mul>() && !extent.is<Min>() && !extent.is<Max>()) {
    return extent;
  }
  BinaryOperands operands = binary_operands(extent);
  Expr a = exact_extent(*operands.a), b = exact_extent(*operands.b);
  return a == *operands.a && b == *operands.b ? extent : binary(extent.kind(), a, b);
}

}  // namespace tilewright
