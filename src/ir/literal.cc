#include "ir/literal.h"

#include <charconv>
#include <cmath>
#include <string>

#include "ir/numeric.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

constexpr DataType kFloat32 = DataType::float_(32);
constexpr DataType kFloat64 = DataType::float_(64);

[[noreturn, gnu::cold]] void refuse(std::string message, std::string hint) {
  throw Exception(script_error("ir/literal", std::move(message), std::move(hint)));
}

/// The shortest text that is read back as the same number.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string text_of(const Operand& number) {
  if (const IntImm* v = number.node.as<IntImm>()) {
    bool big = v->dtype.is_uint() && v->value < 0;
    return big ? std::to_string(static_cast<uint64_t>(v->value)) : std::to_string(v->value);
  }
  const FloatImm* v = number.node.as<FloatImm>();
  return v ? text_of(v->value) : "a number";
}

/// A FloatImm as the rest of the compiler knows it; messages show the `number`, where it is one.
Expr rounded(DataType type, double value, const Operand* number = nullptr) {
  double result = round_float(type, value);
  bool saturates = std::isfinite(round_float(type, HUGE_VAL));
  bool is_beyond = !std::isfinite(result) || (saturates && std::fabs(value) > float_max(type));
  if (std::isfinite(value) && is_beyond) {
    std::string text = number ? text_of(*number) : text_of(value);
    refuse(text + " is beyond the range of " + type.str() + ", which ends at " + text_of(float_max(type)),
           type.bits == 64
               ? "no type has a larger range; T.infinity(\"float64\") is infinity"
               : "give it a wider type, as in T.float64(" + text + "), or write T.infinity(\"" + type.str() + "\")");
  }
  return float_imm(type, result);
}

/// A FloatImm of type float32 whose value is not rounded: make() would round it.
Expr unrounded(double value) {
  auto* node = new NodeOf<FloatImm>(FloatImm{kFloat32, value});
  node->dtype = kFloat32;
  node->span = current_span();
  return Expr(node);
}

bool is_choice(const NodeRef& node) {
  return node.is<Select>() || node.is<Broadcast>() || node.is<Min>() || node.is<Max>() ||
         (node.is<Call>() && is_call_to(Expr(node), Intrinsic::k_if_then_else));
}

/// The choice with `type` as the type of its values; calls `convert` for each.
template <class F>
Expr convert_choice(const Expr& e, F&& convert) {
  if (const Select* v = e.as<Select>()) {
    return make<Select>({v->condition, convert(v->true_value), convert(v->false_value)}, e.span());
  }
  if (const Broadcast* v = e.as<Broadcast>()) return make<Broadcast>({convert(v->value), v->lanes}, e.span());
  if (const Min* v = e.as<Min>()) return make<Min>({convert(v->a), convert(v->b)}, e.span());
  if (const Max* v = e.as<Max>()) return make<Max>({convert(v->a), convert(v->b)}, e.span());
  const Call* v = e.as<Call>();
  Expr yes = convert(Expr(v->args[1])), no = convert(Expr(v->args[2]));
  DataType type = yes.dtype();
  return make<Call>({type, v->op, {v->args[0], std::move(yes), std::move(no)}}, e.span());
}

Expr as_float(DataType type, const Expr& e) {
  if (const FloatImm* v = e.as<FloatImm>()) return rounded(type, v->value);
  if (is_choice(e) && keeps_digits(e)) {
    return convert_choice(e, [&](const Expr& value) { return as_float(type, value); });
  }
  return cast(e.dtype().with_element(type), e);
}

bool fits(DataType type, const IntImm& number) {
  bool big = number.dtype.is_uint() && number.value < 0;  // from 2^63 on
  if (type.bits >= 64) return type.is_uint() ? number.dtype.is_uint() || number.value >= 0 : !big;
  return !big && wrap_int(type, number.value) == number.value;
}

[[noreturn, gnu::cold]] void refuse_integer(const Operand& number, DataType type) {
  std::string text = text_of(number);
  if (type.is_uint()) {
    const IntImm* v = number.node.as<IntImm>();
    bool negative = v && v->value < 0 && !v->dtype.is_uint();
    refuse(
        text + " meets an operand of type " + type.str() + ", which " +
            (negative ? "has no negative numbers" : "does not hold it"),
        "cast the operand to a signed or wider type, as in T.Cast(\"int64\", ...), or write the bits that are meant");
  }
  refuse(text + " meets an operand of type " + type.str() + ", and no signed type holds it",
         "write T.Cast(\"" + type.str() + "\", T.uint64(" + text + ")) for its bits, or cast the operand to uint64");
}

/// The element type in which a number and an operand of type `other` meet.
DataType type_beside(const Operand& number, DataType other) {
  DataType own = Expr(number.node).dtype().element();
  if (other.is_float()) {
    bool choice = !number.node.is<IntImm>() && !number.node.is<FloatImm>();
    return choice && other.bits < 32 ? kFloat32 : other;
  }
  if (number.is_huge) refuse_integer(number, other);
  const IntImm* integer = number.node.as<IntImm>();
  if (!integer) return own;
  if (other.bits >= 32) {
    if (fits(other, *integer)) return other;
    if (other == DataType::int_(32) && fits(DataType::int_(64), *integer)) return DataType::int_(64);
    refuse_integer(number, other);
  }
  for (int bits : {32, 64}) {
    if (fits(DataType::int_(bits), *integer)) return DataType::int_(bits);
  }
  refuse_integer(number, other);
}

/// The number in the type that type_beside() says.
Expr number_in(DataType type, const Operand& number) {
  if (type.is_float()) return number_as(type, number);
  return int_imm(type, number.node.as<IntImm>()->value);
}

}  // namespace

Operand::Operand(NodeRef argument) : node(std::move(argument)), is_number(keeps_digits(node)) {}

Operand number_of_python(double value) {
  bool is_held = std::isnan(value) || round_float(kFloat32, value) == value;
  Operand number(is_held ? Expr(float_imm(kFloat32, value)) : unrounded(value));
  number.is_number = true;
  number.odd = value;
  return number;
}

bool keeps_digits(const NodeRef& node) {
  if (const FloatImm* v = node.as<FloatImm>()) {
    return !std::isnan(v->value) && round_float(v->dtype, v->value) != v->value;
  }
  if (!node.defined() || !is_choice(node)) return false;
  if (const Select* v = node.as<Select>()) return keeps_digits(v->true_value) || keeps_digits(v->false_value);
  if (const Broadcast* v = node.as<Broadcast>()) return keeps_digits(v->value);
  if (const Min* v = node.as<Min>()) return keeps_digits(v->a) || keeps_digits(v->b);
  if (const Max* v = node.as<Max>()) return keeps_digits(v->a) || keeps_digits(v->b);
  const Call* v = node.as<Call>();
  return keeps_digits(v->args[1]) || keeps_digits(v->args[2]);
}

NodeRef settle(NodeRef node) {
  if (!keeps_digits(node)) return node;
  return as_float(kFloat32, Expr(node));
}

Expr settled(const Operand& operand) {
  if (operand.is_huge) refuse_integer(operand, DataType::int_(64));
  return Expr(settle(operand.node));
}

Expr number_as(DataType type, const Operand& number) {
  if (number.is_huge && std::isinf(number.odd)) {
    refuse("an integer of more than 1024 bits meets an operand of type " + type.str(), "no type holds it");
  }
  if (number.node.is<FloatImm>() && !number.is_huge) return as_float(type, Expr(number.node));
  const IntImm* integer = number.node.as<IntImm>();
  if (!integer && !number.is_huge) return as_float(type, Expr(number.node));
  if (type.bits < 64) return rounded(type, number.odd, &number);
  if (number.is_huge) return rounded(type, number.node.as<FloatImm>()->value);
  return float_imm(type, int_to_float(integer->dtype, type, integer->value));
}

std::pair<Expr, Expr> meet(const Operand& a, const Operand& b) {
  Expr left(a.node), right(b.node);
  if (left.defined() && right.defined() && a.is_number != b.is_number) {
    const Operand& number = a.is_number ? a : b;
    Expr& one = a.is_number ? left : right;
    Expr& other = a.is_number ? right : left;
    if (!other.dtype().is_handle() && !other.dtype().is_void()) {
      DataType type = type_beside(number, other.dtype().element());
      one = number_in(type, number);
      other = cast(other.dtype().with_element(type), other);
      promote(left, right);
      return {std::move(left), std::move(right)};
    }
  }
  if (a.is_number) left = settled(a);
  if (b.is_number) right = settled(b);
  promote(left, right);
  return {std::move(left), std::move(right)};
}

std::pair<Expr, Expr> meet_alternatives(const Operand& a, const Operand& b) {
  bool keeps = a.is_number && b.is_number && (keeps_digits(a.node) || keeps_digits(b.node));
  if (!keeps || a.is_huge || b.is_huge) return meet(a, b);
  auto as_number = [](const Operand& number) -> Expr {
    const IntImm* v = number.node.as<IntImm>();
    return v ? unrounded(int_to_float(v->dtype, kFloat64, v->value)) : Expr(number.node);
  };
  Expr left = as_number(a), right = as_number(b);
  promote(left, right);  // of a vector and a scalar
  return {std::move(left), std::move(right)};
}

Expr exact(const Operand& value) {
  if (value.is_huge) refuse_integer(value, DataType::int_(64));
  Expr e(value.node);
  return keeps_digits(e) ? as_float(kFloat64, e) : e;
}

Expr least(const Operand& a, const Operand& b, bool is_max) {
  auto [left, right] = meet_alternatives(a, b);
  const FloatImm *x = left.as<FloatImm>(), *y = right.as<FloatImm>();
  if (x && y && (keeps_digits(left) || keeps_digits(right)) && !std::isnan(x->value) && !std::isnan(y->value)) {
    return (x->value < y->value) != is_max ? left : right;
  }
  return is_max ? max(std::move(left), std::move(right)) : min(std::move(left), std::move(right));
}

Expr cast(DataType type, const Operand& value) {
  bool is_number = value.is_number && type.is_float();
  return cast(type, is_number ? number_as(type.element(), value) : exact(value));
}

}  // namespace tilewright
