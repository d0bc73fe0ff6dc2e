#include "ir/fold.h"

#include <cmath>

#include "ir/build.h"
#include "ir/meaning.h"
#include "ir/numeric.h"

namespace tilewright {
namespace {

std::optional<Expr> fold_ints(Kind kind, DataType type, int64_t a, int64_t b) {
  bool is_unsigned = type.is_uint();
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  auto less = [&] { return is_unsigned ? ua < ub : a < b; };
  auto number = [&](int64_t wide, bool overflow) -> std::optional<Expr> {
    int64_t value = wrap_int(type, wide);
    // Signed 32 and 64-bit integers are index arithmetic, which has no overflow: leave the expression to be reported.
    if (type.is_int() && type.bits >= 32 && (overflow || value != wide)) return std::nullopt;
    return int_imm(type, value);
  };
  int64_t wide = 0;
  switch (kind) {
    case Kind::kAdd: {
      bool overflow = __builtin_add_overflow(a, b, &wide);
      return number(wide, overflow);
    }
    case Kind::kSub: {
      bool overflow = __builtin_sub_overflow(a, b, &wide);
      return number(wide, overflow);
    }
    case Kind::kMul: {
      bool overflow = __builtin_mul_overflow(a, b, &wide);
      return number(wide, overflow);
    }
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod: {
      if (b == 0) return std::nullopt;
      bool quotient = kind == Kind::kDiv || kind == Kind::kFloorDiv;
      if (is_unsigned) return int_imm(type, static_cast<int64_t>(quotient ? ua / ub : ua % ub));
      if (b == -1) return number(quotient ? floor_div(a, b) : 0, quotient && a == int_min(type));
      if (kind == Kind::kDiv) return int_imm(type, a / b);
      if (kind == Kind::kMod) return int_imm(type, a % b);
      return int_imm(type, quotient ? floor_div(a, b) : floor_mod(a, b));
    }
    case Kind::kMin:
      return int_imm(type, less() ? a : b);
    case Kind::kMax:
      return int_imm(type, less() ? b : a);
    case Kind::kEQ:
      return bool_imm(a == b);
    case Kind::kNE:
      return bool_imm(a != b);
    case Kind::kLT:
      return bool_imm(less());
    case Kind::kGE:
      return bool_imm(!less());
    case Kind::kLE:
      return bool_imm(less() || a == b);
    case Kind::kGT:
      return bool_imm(!less() && a != b);
    case Kind::kAnd:
      return bool_imm(a && b);
    case Kind::kOr:
      return bool_imm(a || b);
    default:
      return std::nullopt;
  }
}

std::optional<Expr> fold_floats(Kind kind, DataType type, double a, double b) {
  auto number = [&](double value) { return float_imm(type, round_result(type, value)); };
  switch (kind) {
    case Kind::kAdd:
      return number(a + b);
    case Kind::kSub:
      return number(a - b);
    case Kind::kMul:
      return number(a * b);
    case Kind::kDiv:
      if (b == 0) return std::nullopt;
      return number(a / b);
    case Kind::kFloorDiv:
      if (b == 0) return std::nullopt;
      return number(floor_div_of(type, a, b));
    case Kind::kFloorMod:
      if (b == 0) return std::nullopt;
      return number(floor_mod_of(a, b));
    case Kind::kMin:
      return number(min_of(a, b));
    case Kind::kMax:
      return number(max_of(a, b));
    case Kind::kEQ:
      return bool_imm(a == b);
    case Kind::kNE:
      return bool_imm(a != b);
    case Kind::kLT:
      return bool_imm(a < b);
    case Kind::kLE:
      return bool_imm(a <= b);
    case Kind::kGT:
      return bool_imm(a > b);
    case Kind::kGE:
      return bool_imm(a >= b);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Expr> fold_binary(Kind kind, const Expr& a, const Expr& b) {
  const IntImm *ia = a.as<IntImm>(), *ib = b.as<IntImm>();
  if (ia && ib) return fold_ints(kind, ia->dtype, ia->value, ib->value);
  const FloatImm *fa = a.as<FloatImm>(), *fb = b.as<FloatImm>();
  if (fa && fb) return fold_floats(kind, fa->dtype, fa->value, fb->value);
  return std::nullopt;
}

std::optional<Expr> fold_cast(DataType dtype, const Expr& value) {
  if (!dtype.is_scalar()) return std::nullopt;
  if (const IntImm* v = value.as<IntImm>()) {
    if (dtype.is_bool()) return bool_imm(v->value != 0);
    if (dtype.is_integral()) return int_imm(dtype, wrap_int(dtype, v->value));
    if (dtype.is_float()) return float_imm(dtype, int_to_float(v->dtype, dtype, v->value));
  }
  if (const FloatImm* v = value.as<FloatImm>()) {
    if (dtype.is_float()) return float_imm(dtype, v->value);
    if (dtype.is_bool()) return bool_imm(v->value != 0);
    if (dtype.is_integral()) return int_imm(dtype, float_to_int(dtype, v->value));
  }
  return std::nullopt;
}

std::optional<Expr> fold_call(Intrinsic intrinsic, DataType dtype, const std::vector<Expr>& args) {
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  bool exact = row.folds == Folds::kConstant || row.folds == Folds::kConstantOrZero;
  if (!exact || static_cast<int>(args.size()) != row.arity || !dtype.is_scalar()) return std::nullopt;
  auto number = [&](int64_t value) -> Expr {
    if (dtype.is_bool()) return bool_imm(value != 0);
    return int_imm(dtype, value);
  };
  if (const FloatImm* a = args[0].as<FloatImm>(); a && row.of_floats && args.size() == 1) {
    double result = compute(intrinsic, a->dtype, a->value);
    if (dtype.is_integral()) return number(static_cast<int64_t>(result));
    return float_imm(dtype, result);
  }
  const IntImm *a = args[0].as<IntImm>(), *b = args.back().as<IntImm>();
  if (!a || !b || !row.of_integers || args.size() > 2) return std::nullopt;
  return number(compute(intrinsic, a->dtype, {a->value, b->value}));
}

}  // namespace tilewright
