// For tests: values of small expressions, with index arithmetic over the integers (128 bits, so that nothing overflows
// unnoticed) and the other types wrapping.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/build.h"
#include "ir/numeric.h"

namespace tilewright::arith {

using Env = std::unordered_map<NodeRef, int64_t>;

/// Returns nothing if the expression divides by 0 or an index operation overflows: the contract excludes such inputs.
inline std::optional<int64_t> evaluate(const Expr& e, const Env& env) {
  using Wide = __int128;
  auto finish = [&](Wide value) -> std::optional<int64_t> {
    DataType type = e.dtype();
    if (type.is_int() && type.bits >= 32) {
      if (value < int_min(type) || value > int_max(type)) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    return wrap_int(type, static_cast<int64_t>(value));
  };
  if (const IntImm* imm = e.as<IntImm>()) return imm->value;
  if (e.is<Var>()) return env.at(e);
  if (const Cast* cast = e.as<Cast>()) {
    auto v = evaluate(cast->value, env);
    if (!v) return std::nullopt;
    return cast->dtype.is_bool() ? *v != 0 : wrap_int(cast->dtype, *v);
  }
  if (const Not* node = e.as<Not>()) {
    auto v = evaluate(node->a, env);
    return v ? std::optional<int64_t>(*v == 0) : std::nullopt;
  }
  auto choose = [&](const Expr& c, const Expr& t, const Expr& f) -> std::optional<int64_t> {
    auto v = evaluate(c, env);
    if (!v) return std::nullopt;
    return evaluate(*v ? t : f, env);
  };
  if (const Select* node = e.as<Select>()) return choose(node->condition, node->true_value, node->false_value);
  if (const Call* call = e.as<Call>()) {
    if (intrinsic_of(*call) == Intrinsic::k_if_then_else) return choose(call->arg(0), call->arg(1), call->arg(2));
  }
  // Logic does not evaluate what cannot matter: a guard may keep a division from its 0.
  if (const And* node = e.as<And>()) {
    auto a = evaluate(node->a, env), b = evaluate(node->b, env);
    if ((a && !*a) || (b && !*b)) return 0;
    return a && b ? std::optional<int64_t>(1) : std::nullopt;
  }
  if (const Or* node = e.as<Or>()) {
    auto a = evaluate(node->a, env), b = evaluate(node->b, env);
    if ((a && *a) || (b && *b)) return 1;
    return a && b ? std::optional<int64_t>(0) : std::nullopt;
  }
  auto apply = [&](const Expr& x, const Expr& y, auto&& op) -> std::optional<int64_t> {
    auto a = evaluate(x, env), b = evaluate(y, env);
    if (!a || !b) return std::nullopt;
    return op(*a, *b);
  };
  bool is_unsigned = false;
#define TW_OP(Name, ...)                                                           \
  if (const Name* node = e.as<Name>()) {                                           \
    is_unsigned = node->a.dtype().is_uint();                                       \
    return apply(node->a, node->b, [&](Wide a, Wide b) -> std::optional<int64_t> { \
      if (is_unsigned) a = static_cast<uint64_t>(a), b = static_cast<uint64_t>(b); \
      __VA_ARGS__;                                                                 \
    });                                                                            \
  }
  TW_OP(Add, return finish(a + b))
  TW_OP(Sub, return finish(a - b))
  TW_OP(Mul, return finish(static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b))))
  TW_OP(Min, return finish(a < b ? a : b))
  TW_OP(Max, return finish(a > b ? a : b))
  TW_OP(Div, if (b == 0) return std::nullopt; return finish(a / b))
  TW_OP(Mod, if (b == 0) return std::nullopt; return finish(a % b))
  TW_OP(FloorDiv, if (b == 0) return std::nullopt; Wide q = a / b; if (a % b != 0 && (a % b < 0) != (b < 0))-- q;
        return finish(q))
  TW_OP(FloorMod, if (b == 0) return std::nullopt; Wide r = a % b; if (r != 0 && (r < 0) != (b < 0)) r += b;
        return finish(r))
  TW_OP(EQ, return a == b)
  TW_OP(NE, return a != b)
  TW_OP(LT, return a < b)
  TW_OP(LE, return a <= b)
  TW_OP(GT, return a > b)
  TW_OP(GE, return a >= b)
#undef TW_OP
  return std::nullopt;
}

/// A plain rendering for messages; the printer belongs to another layer.
inline std::string text(const Expr& e) {
  if (const IntImm* imm = e.as<IntImm>()) return std::to_string(imm->value);
  if (const Var* v = e.as<Var>()) return v->name_hint;
  if (const Cast* c = e.as<Cast>()) return c->dtype.str() + "(" + text(c->value) + ")";
  if (const Not* n = e.as<Not>()) return "!" + text(n->a);
  if (const Select* s = e.as<Select>())
    return "select(" + text(s->condition) + ", " + text(s->true_value) + ", " + text(s->false_value) + ")";
  if (const Ramp* r = e.as<Ramp>()) return "ramp(" + text(r->base) + ", " + text(r->stride) + ")";
  if (const Broadcast* b = e.as<Broadcast>()) return "bc(" + text(b->value) + ")";
#define TW_OP(Name, sign) \
  if (const Name* n = e.as<Name>()) return "(" + text(n->a) + " " sign " " + text(n->b) + ")";
  TW_OP(Add, "+")
  TW_OP(Sub, "-")
  TW_OP(Mul, "*")
  TW_OP(Div, "/")
  TW_OP(Mod, "rem")
  TW_OP(FloorDiv, "//")
  TW_OP(FloorMod, "%")
  TW_OP(Min, "min")
  TW_OP(Max, "max")
  TW_OP(EQ, "==")
  TW_OP(NE, "!=")
  TW_OP(LT, "<")
  TW_OP(LE, "<=")
  TW_OP(GT, ">")
  TW_OP(GE, ">=")
  TW_OP(And, "&&")
  TW_OP(Or, "||")
#undef TW_OP
  return kind_name(e.kind());
}

}  // namespace tilewright::arith
