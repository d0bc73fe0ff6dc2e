// Dispatch over the kinds of nodes, and the kinds that are neither arithmetic nor logic.
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "ir/meaning.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::arith {
namespace {

/// Settled by the normal form of sums.
bool is_sum(const Expr& e) {
  switch (e.kind()) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
      return true;
    default:
      return false;
  }
}

}  // namespace

Expr Engine::simplify(const Expr& e) {
  switch (e.kind()) {
    case Kind::kIntImm:
    case Kind::kFloatImm:
    case Kind::kStringImm:
    case Kind::kOp:
    case Kind::kGlobalVar:
      return e;
    case Kind::kVar: {
      const VarInfo* known = info(e);
      if (known && known->value.defined()) return known->value;
      if ((known || !bounds_.empty()) && is_index(e.dtype())) {
        ConstIntBound range = bound(e);
        if (range.is_single()) return int_imm(e.dtype(), range.min_value);
      }
      return decided(e);
    }
    default:
      break;
  }
  auto& memo = value_mode_ ? values_ : simplified_;
  if (const Expr* known = memo.find(e)) return *known;
  Expr result = decided(compute(e));
  if (identical(result, e)) result = e;
  // Each rule makes the expression smaller or moves it towards one form; the limit is a second safeguard.
  constexpr int kMaxRewrites = 16;
  if (!is_index(result.dtype()) || !is_sum(result) || wraps(result)) {
    Expr next = rewrites_ < kMaxRewrites ? rewritten(result) : result;
    if (!(next == result)) {
      ++rewrites_;
      result = simplify(next);
      --rewrites_;
    }
  }
  (value_mode_ ? values_ : simplified_).insert(e, result);
  return result;
}

/// A condition that the context settles.
Expr Engine::decided(const Expr& e) {
  if (truths_.empty() || !e.dtype().is_bool() || e.dtype().is_vector() || e.is<IntImm>() || wraps(e)) return e;
  auto truth = known_truth(fp(e));
  return truth ? Expr(bool_imm(*truth)) : e;
}

Expr Engine::simplify_value(const Expr& e) {
  bool outer = std::exchange(value_mode_, true);
  Expr result = simplify(e);
  value_mode_ = outer;
  return result;
}

Expr Engine::compute(const Expr& e) {
  if (e.dtype().is_vector() && !e.is<BufferLoad>() && !e.is<Call>() && !e.is<Let>() && !e.is<Shuffle>()) {
    return simplify_vector(e);
  }
  switch (e.kind()) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
      return is_index(e.dtype()) && !wraps(e) ? simplify_index(e) : simplify_wrapping(e);
    case Kind::kMin:
    case Kind::kMax:
      return simplify_min_max(e);
    case Kind::kEQ:
    case Kind::kNE:
    case Kind::kLT:
    case Kind::kLE:
    case Kind::kGT:
    case Kind::kGE: {
      // Operands of a comparison with data are values, not addresses.
      bool outer = std::exchange(value_mode_, value_mode_ || reads_data(e));
      Expr result = simplify_compare(e);
      value_mode_ = outer;
      return result;
    }
    case Kind::kAnd:
    case Kind::kOr:
      return simplify_logic(e);
    case Kind::kNot:
      return simplify_not(e);
    case Kind::kSelect: {
      const Select& select = *e.as<Select>();
      return simplify_select(select.condition, select.true_value, select.false_value, e);
    }
    case Kind::kCast:
      return simplify_cast(e);
    case Kind::kLet:
      return simplify_let(e);
    case Kind::kCall:
      return simplify_call(e);
    case Kind::kBufferLoad: {
      // Indices are index arithmetic also inside a value.
      bool outer = std::exchange(value_mode_, false);
      Expr result = rebuild(e);
      value_mode_ = outer;
      return result;
    }
    default:
      return rebuild(e);
  }
}

/// The node with simplified operands.
Expr Engine::rebuild(const Expr& e) {
  auto map = [](void* context, const NodeRef& child, Role role) -> NodeRef {
    if (role == Role::kDef || child.sort() != Sort::kExpr) return child;
    return static_cast<Engine*>(context)->simplify(Expr(child));
  };
  return Expr(detail::map_children(e, map, this));
}

bool Engine::reads_data(const Expr& e) {
  if (e.is<IntImm>() || e.is<Var>() || e.is<FloatImm>()) return false;
  if (e.is<BufferLoad>()) return true;
  if (const bool* known = reads_data_.find(e)) return *known;
  const Call* call = e.as<Call>();
  bool result = call && call->dtype.is_integral() && intrinsic_of(*call) != Intrinsic::k_if_then_else;
  for_each_child(e, [&](const NodeRef& child, Role) {
    if (!result && child.sort() == Sort::kExpr) result = reads_data(Expr(child));
  });
  reads_data_.insert(e, result);
  return result;
}

bool Engine::may_wrap(const Expr& e) {
  if (e.is<BufferLoad>() || !reads_data(e)) return false;
  bool result = false;
  for_each_child(e, [&](const NodeRef& child, Role) {
    if (!result && child.sort() == Sort::kExpr) result = may_wrap(Expr(child));
  });
  if (result || !is_index(e.dtype())) return result;
  auto leaves_type = [&](const auto& node, auto&& of_ends) {
    const ConstIntBound a = bound(node.a), b = bound(node.b), type = ConstIntBound::of_type(e.dtype());
    for (__int128 x : {a.min_value, a.max_value}) {
      for (__int128 y : {b.min_value, b.max_value}) {
        if (of_ends(x, y) < type.min_value || of_ends(x, y) > type.max_value) return true;
      }
    }
    return false;
  };
  if (const Add* add = e.as<Add>()) return leaves_type(*add, [](auto x, auto y) { return x + y; });
  if (const Sub* sub = e.as<Sub>()) return leaves_type(*sub, [](auto x, auto y) { return x - y; });
  if (const Mul* mul = e.as<Mul>()) return leaves_type(*mul, [](auto x, auto y) { return x * y; });
  return false;
}

/// Simplifies arithmetic of floats, unsigned integers and small integers; the rules hold exactly despite wrapping
/// and rounding.
Expr Engine::simplify_wrapping(const Expr& e) {
  Expr result = rebuild(e);
  if (result.is<IntImm>()) return result;
  auto operands = [&](const auto* node) { return std::pair{node->a, node->b}; };
  auto [a, b] = result.is<Add>()        ? operands(result.as<Add>())
                : result.is<Sub>()      ? operands(result.as<Sub>())
                : result.is<Mul>()      ? operands(result.as<Mul>())
                : result.is<Div>()      ? operands(result.as<Div>())
                : result.is<Mod>()      ? operands(result.as<Mod>())
                : result.is<FloorDiv>() ? operands(result.as<FloorDiv>())
                                        : operands(result.as<FloorMod>());
  if (fingerprints_.has_effect(result)) return result;
  bool by_zero = is_const_int(b, 0) && !result.is<Add>() && !result.is<Sub>() && !result.is<Mul>();
  if (!by_zero) result = binary(result.kind(), a, b);
  return result;
}

bool Engine::fits_type(const Expr& e, DataType type) { return bound(e).within(ConstIntBound::of_type(type)); }

/// An index expression computed in a smaller type, with casts at its variables alone; null where a part may not fit.
Expr Engine::narrowed(const Expr& e, DataType type) {
  if (!fits_type(e, type)) return {};
  if (const IntImm* imm = e.as<IntImm>()) return int_imm(type, imm->value);
  if (e.is<Var>()) return make<Cast>({type, e});
  if (const Cast* cast = e.as<Cast>(); cast && is_widening_index_cast(*cast) && cast->value.dtype().bits <= type.bits) {
    return tilewright::cast(type, cast->value);
  }
  auto [a, b] = binary_operands(e);
  if (!a || !b || !is_index(a->dtype())) return {};
  Expr x = narrowed(*a, type), y = x.defined() ? narrowed(*b, type) : Expr();
  return y.defined() ? make_binary(e.kind(), x, y) : Expr();
}

Expr Engine::simplify_cast(const Expr& e) {
  const Cast& node = *e.as<Cast>();
  Expr value = simplify(node.value);
  if (value.dtype() == node.dtype) return value;
  if (auto folded = fold_cast(node.dtype, value)) return *folded;
  if (is_index(node.dtype) && is_index(value.dtype())) {
    const Cast* inner = value.as<Cast>();
    if (inner && inner->value.dtype() == node.dtype && is_index(inner->dtype)) {
      if (is_widening_index_cast(*inner) || fits_type(inner->value, inner->dtype)) return inner->value;
    }
    if (!value.is<Var>() && node.dtype.bits < value.dtype().bits) {
      Expr smaller = narrowed(value, node.dtype);
      if (smaller.defined()) return simplify(smaller);
    }
  }
  return value == node.value ? e : Expr(make<Cast>({node.dtype, value}));
}

/// A let of something cheap is replaced; otherwise its bound is known in the body.
Expr Engine::simplify_let(const Expr& e) {
  const Let& node = *e.as<Let>();
  Expr value = simplify(node.value);
  if (value.is<IntImm>() || value.is<Var>() || value.is<FloatImm>()) {
    return simplify(substitute(node.body, {{node.var, value}}));
  }
  Expr body = simplify(node.body);
  if (!uses_var(body, node.var) && effect_of(value) != Effect::kUpdateState) return body;
  if (value == node.value && body == node.body) return e;
  return make<Let>({node.var, value, body});
}

Expr Engine::simplify_call(const Expr& e) {
  const Call& call = *e.as<Call>();
  Intrinsic intrinsic = intrinsic_of(call);
  if (intrinsic == Intrinsic::k_if_then_else) {
    return simplify_select(call.arg(0), call.arg(1), call.arg(2), e);
  }
  Expr result = rebuild(e);
  const Call* simple = result.as<Call>();
  if (!simple) return result;
  if (intrinsic == Intrinsic::k_likely) return simple->arg(0).is<IntImm>() ? simple->arg(0) : result;
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  if (intrinsic == Intrinsic::k_clz || intrinsic == Intrinsic::k_popcount) {  // not folded where they are written
    const IntImm* value = simple->arg(0).as<IntImm>();
    if (!value || !e.dtype().is_scalar()) return result;
    return int_imm(e.dtype(), tilewright::compute(intrinsic, value->dtype, IntArgs{value->value}));
  }
  if (row.folds == Folds::kNever || row.folds == Folds::kFirst) return result;
  std::vector<Expr> args;
  for (const NodeRef& node : simple->args) {
    if (node.sort() != Sort::kExpr) return result;
    args.emplace_back(node);
  }
  if (auto folded = fold_call(intrinsic, e.dtype(), args)) return *folded;
  if (row.folds == Folds::kConstantOrZero && is_const_int(simple->arg(1), 0)) {
    return intrinsic == Intrinsic::k_bitwise_and ? simple->arg(1) : simple->arg(0);
  }
  return result;
}

}  // namespace tilewright::arith
