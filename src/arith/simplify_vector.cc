// Vectors: operators of Ramp and Broadcast become Ramp and Broadcast of operators where every lane allows it.
#include "arith/engine.h"
#include "ir/build.h"
#include "support/diagnostic.h"

namespace tilewright::arith {
namespace {

struct Lanes {
  Expr base, stride;  ///< stride null: all lanes equal
};

std::optional<Lanes> as_lanes(const Expr& e) {
  if (const Ramp* ramp = e.as<Ramp>()) return Lanes{ramp->base, ramp->stride};
  if (const Broadcast* broadcast = e.as<Broadcast>()) return Lanes{broadcast->value, {}};
  return std::nullopt;
}

Expr lanes_of(const Expr& e) {
  if (const Ramp* ramp = e.as<Ramp>()) return ramp->lanes;
  return e.as<Broadcast>()->lanes;
}

bool divides_by_zero(Kind kind, const Expr& divisor) {
  bool division = kind == Kind::kDiv || kind == Kind::kMod || kind == Kind::kFloorDiv || kind == Kind::kFloorMod;
  return division && is_const_int(divisor, 0) && divisor.dtype().is_integral();
}

}  // namespace

Expr Engine::simplify_vector(const Expr& e) {
  Expr result = rebuild(e);
  if (const Ramp* ramp = result.as<Ramp>()) {
    if (is_const_int(ramp->stride, 0)) return make<Broadcast>({ramp->base, ramp->lanes});
    return result;
  }
  if (const Cast* cast = result.as<Cast>()) {
    const Broadcast* inner = cast->value.as<Broadcast>();
    if (inner) return make<Broadcast>({simplify(make<Cast>({cast->dtype.element(), inner->value})), inner->lanes});
    const Ramp* ramp = cast->value.as<Ramp>();
    DataType to = cast->dtype.element();
    if (ramp && is_index(to) && is_index(ramp->base.dtype()) && to.bits >= ramp->base.dtype().bits) {
      return make<Ramp>(
          {simplify(make<Cast>({to, ramp->base})), simplify(make<Cast>({to, ramp->stride})), ramp->lanes});
    }
    return result;
  }
  if (const Select* select = result.as<Select>()) {
    if (auto c = const_int(select->condition)) return *c ? select->true_value : select->false_value;
    if (select->true_value == select->false_value) return select->true_value;
    return result;
  }
  if (const Not* negation = result.as<Not>()) {
    const Broadcast* inner = negation->a.as<Broadcast>();
    if (inner) return make<Broadcast>({simplify(make<Not>({inner->value})), inner->lanes});
    return result;
  }
  BinaryOperands sides = binary_operands(result);
  if (!sides) return result;
  const Expr &a = *sides.a, &b = *sides.b;
  auto x = as_lanes(a), y = as_lanes(b);
  if (x && y) {
    Expr lifted = lift(result.kind(), a, b);
    return lifted.defined() ? lifted : result;
  }
  // Neutral elements, also of vectors that are no ramps.
  if (divides_by_zero(result.kind(), b)) return result;
  if (result.is<And>() || result.is<Or>()) {
    auto c = const_int(a) ? const_int(a) : const_int(b);
    if (!c) return result;
    bool neutral = result.is<And>() == (*c != 0);
    return const_int(a).has_value() == neutral ? b : a;
  }
  return binary(result.kind(), a, b);
}

/// Both sides are Ramp or Broadcast of the same lanes. Returns null if the result is neither.
Expr Engine::lift(Kind kind, const Expr& a, const Expr& b) {
  Lanes x = *as_lanes(a), y = *as_lanes(b);
  Expr lanes = lanes_of(a);
  auto scalar = [&](Kind op, const Expr& p, const Expr& q) { return simplify(make_binary(op, p, q)); };
  if (!x.stride.defined() && !y.stride.defined()) {
    if (divides_by_zero(kind, y.base)) return {};
    return make<Broadcast>({scalar(kind, x.base, y.base), lanes});
  }
  DataType type = x.base.dtype();
  if (!is_index(type)) return {};
  auto zero_if_none = [&](const Expr& stride) { return stride.defined() ? stride : zero(type); };
  auto ramp = [&](const Expr& base, const Expr& stride) { return simplify(make<Ramp>({base, stride, lanes})); };
  switch (kind) {
    case Kind::kAdd:
    case Kind::kSub:
      return ramp(scalar(kind, x.base, y.base), scalar(kind, zero_if_none(x.stride), zero_if_none(y.stride)));
    case Kind::kMul:
      if (x.stride.defined() && y.stride.defined()) return {};
      return x.stride.defined() ? ramp(scalar(kind, x.base, y.base), scalar(kind, x.stride, y.base))
                                : ramp(scalar(kind, x.base, y.base), scalar(kind, x.base, y.stride));
    case Kind::kFloorDiv:
    case Kind::kFloorMod: {
      if (y.stride.defined()) return {};
      auto divisor = const_int(y.base), stride = const_int(x.stride);
      if (!divisor || *divisor <= 0 || !stride) return {};
      if (*stride % *divisor == 0) {
        Expr step = int_imm(type, *stride / *divisor);
        if (kind == Kind::kFloorDiv) return ramp(scalar(kind, x.base, y.base), step);
        return make<Broadcast>({scalar(kind, x.base, y.base), lanes});
      }
      // All lanes in one block of the divisor: base % divisor + steps stays inside.
      Expr within = scalar(Kind::kFloorMod, x.base, y.base);
      ConstIntBound start = bound(within);
      int64_t count = const_int(lanes).value_or(ConstIntBound::kPosInf);
      ConstIntBound steps = ConstIntBound::single(*stride) * ConstIntBound{0, count - 1};
      // A start that is a multiple of g leaves g - 1 of room less than its interval says.
      ModularSet set = residues(within);
      if (set.coeff > 1 && *divisor % set.coeff == 0) {
        start.max_value = std::min(start.max_value, *divisor - set.coeff + set.base % set.coeff);
      }
      ConstIntBound all = start + steps;
      if (all.min_value < 0 || all.max_value >= *divisor) return {};
      if (kind == Kind::kFloorDiv) return make<Broadcast>({scalar(kind, x.base, y.base), lanes});
      return ramp(within, x.stride);
    }
    case Kind::kMin:
    case Kind::kMax: {
      ConstIntBound p = bound(a), q = bound(b);
      if (p.max_value <= q.min_value) return kind == Kind::kMin ? a : b;
      if (q.max_value <= p.min_value) return kind == Kind::kMin ? b : a;
      return {};
    }
    case Kind::kEQ:
    case Kind::kNE:
    case Kind::kLT:
    case Kind::kLE:
    case Kind::kGT:
    case Kind::kGE:
      return compare_lanes(kind, a, b);
    default:
      return {};
  }
}

/// A comparison that has the same outcome in all lanes: decided at the two ends of the difference.
Expr Engine::compare_lanes(Kind kind, const Expr& a, const Expr& b) {
  Lanes x = *as_lanes(a), y = *as_lanes(b);
  DataType type = x.base.dtype();
  Expr lanes = lanes_of(a);
  auto count = const_int(lanes);
  if (!count) return {};
  auto at_end = [&](const Lanes& side) -> Expr {
    return side.stride.defined() ? side.base + side.stride * constant(type, *count - 1) : side.base;
  };
  auto whole = [&](bool value) { return Expr(make<Broadcast>({bool_imm(value), lanes})); };
  // The difference is linear in the lane, so what holds at both ends holds between them (EQ: at any two lanes).
  auto both = [&](Kind op) {
    return prove(make_binary(op, x.base, y.base)) && prove(make_binary(op, at_end(x), at_end(y)));
  };
  Kind opposite = kind == Kind::kLT   ? Kind::kGE
                  : kind == Kind::kLE ? Kind::kGT
                  : kind == Kind::kGT ? Kind::kLE
                  : kind == Kind::kGE ? Kind::kLT
                  : kind == Kind::kEQ ? Kind::kNE
                                      : Kind::kEQ;
  auto always = [&](Kind op) {
    // An inequality at both ends does not imply it for the lanes between, unless its sign is the same.
    if (op == Kind::kNE) return both(Kind::kLT) || both(Kind::kGT);
    return both(op);
  };
  if (always(kind)) return whole(true);
  if (always(opposite)) return whole(false);
  return {};
}

}  // namespace tilewright::arith
