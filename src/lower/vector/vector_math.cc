#include "lower/vector/vector_math.h"

#include <algorithm>

#include "ir/traverse.h"

namespace tilewright::lower {

int widest_element(const Stmt& body) {
  int bits = 8;
  visit(body, on<BufferLoad, BufferStore>([&](const auto& access) {
          bits = std::max<int>(bits, access->buffer->dtype.bits);
        }),
        [&](const Ref<Cast>& cast_node) {
          if (cast_node->dtype.is_float()) bits = std::max<int>(bits, cast_node->dtype.bits);
        });
  return bits;
}

bool has_masked_access(const Target& target, DataType type) {
  return target.has("avx512bw") || (target.has("avx") && type.bits >= 32);
}

bool calls_elementary_function(const Stmt& body) {
  return any_node(body, [](const Ref<Call>& call) { return intrinsic_row(intrinsic_of(*call)).elementary; });
}

Expr bits_as(DataType type, Expr value) { return call(type, "tir.reinterpret", {std::move(value)}); }

Expr to_lanes(const Expr& value, int lanes) {
  return lanes == 1 || value.dtype().is_vector() ? value : broadcast(value, lanes);
}

bool is_division(Kind kind) {
  return kind == Kind::kDiv || kind == Kind::kMod || kind == Kind::kFloorDiv || kind == Kind::kFloorMod;
}

Expr vector_binary(Kind kind, const Expr& a, const Expr& b) {
  const Broadcast* same = b.as<Broadcast>();
  if (is_division(kind) && is_const_int(same ? same->value : b, 0)) {
    return to_lanes(zero(a.dtype().element()), std::max(a.dtype().lanes, b.dtype().lanes));
  }
  if (a.dtype().is_scalar() && b.dtype().is_scalar()) return binary(kind, a, b);
  int lanes = std::max(a.dtype().lanes, b.dtype().lanes);
  const Ramp *ra = a.as<Ramp>(), *rb = b.as<Ramp>();
  auto scalar = [](const Expr& e) {
    if (const Broadcast* same = e.as<Broadcast>()) return same->value;
    return e.dtype().is_scalar() ? e : Expr();
  };
  Expr sa = scalar(a), sb = scalar(b);
  if (sa.defined() && sb.defined()) return broadcast(binary(kind, sa, sb), lanes);
  switch (kind) {
    case Kind::kAdd:
      if (ra && sb.defined()) return ramp(ra->base + sb, ra->stride, lanes);
      if (rb && sa.defined()) return ramp(sa + rb->base, rb->stride, lanes);
      if (ra && rb) return ramp(ra->base + rb->base, ra->stride + rb->stride, lanes);
      break;
    case Kind::kSub:
      if (ra && sb.defined()) return ramp(ra->base - sb, ra->stride, lanes);
      if (rb && sa.defined()) return ramp(sa - rb->base, zero(rb->stride.dtype()) - rb->stride, lanes);
      if (ra && rb) return ramp(ra->base - rb->base, ra->stride - rb->stride, lanes);
      break;
    case Kind::kMul:
      if (ra && sb.defined()) return ramp(ra->base * sb, ra->stride * sb, lanes);
      if (rb && sa.defined()) return ramp(sa * rb->base, sa * rb->stride, lanes);
      break;
    default:
      break;
  }
  return binary(kind, to_lanes(a, lanes), to_lanes(b, lanes));
}

Stmt substitute_folding(const Stmt& body, const Ref<Var>& v, const Expr& value) {
  auto fold = [](const auto& node, Rewriter& r) -> Expr {
    Expr a = r(node->a), b = r(node->b);
    if (a == node->a && b == node->b) return node;
    return vector_binary(Expr(node).kind(), a, b);
  };
  return rewrite(
      body, [&](const Ref<Var>& x, Rewriter&) -> Expr { return x == v ? value : Expr(x); },
      on<Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or>(fold),
      [&](const Ref<Cast>& node, Rewriter& r) -> Expr {
        Expr inner = r(node->value);
        return inner == node->value ? Expr(node) : cast(node->dtype, inner);
      },
      [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt {
        Expr condition = r(branch->condition);
        if (is_true(condition)) return r(branch->then_case);
        if (is_false(condition)) return branch->else_case.defined() ? r(branch->else_case) : nop();
        return make<IfThenElse>({condition, r(branch->then_case), r(branch->else_case)}, branch.span());
      });
}

}  // namespace tilewright::lower
